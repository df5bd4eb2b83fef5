/**
 * What the views say: in the language of JupyterLab where there is one, else in English.
 *
 * A page has one language, and JupyterLab knows it before it activates an extension, so it is set
 * once and not handed through every function that writes a word.
 */

/** The part of JupyterLab's `TranslationBundle` that the views use. */
export interface Words {
  /** A text in which `%1`, `%2`... are replaced by the arguments. */
  __(text: string, ...args: (string | number)[]): string;
  /** The form for one or for many; `%1` is the number itself. */
  _n(one: string, many: string, n: number, ...args: (string | number)[]): string;
}

/** The language of the texts in the source. */
export const english: Words = {
  __: (text, ...args) => filled(text, args),
  _n: (one, many, n, ...args) => filled(n === 1 ? one : many, [n, ...args])
};

let words = english;

export const trans: Words = {
  __: (text, ...args) => words.__(text, ...args),
  _n: (one, many, n, ...args) => words._n(one, many, n, ...args)
};

/** Use another language from now on. */
export function speak(now: Words): void {
  words = now;
}

function filled(text: string, args: readonly (string | number)[]): string {
  return text.replace(/%(\d+)/g, (_, i) => String(args[Number(i) - 1] ?? ''));
}
