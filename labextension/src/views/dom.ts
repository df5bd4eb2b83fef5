/**
 * What all views of Perspex are made of: elements, and text that anybody may have written.
 *
 * Text only ever goes into text nodes and attributes and is never parsed as markup. Characters that
 * are invisible or reorder their neighbours become visible escapes. `perspex_magics.display.markup` does the
 * same for HTML that Python writes.
 */

/** How much of somebody else's text is shown; the tooltip has the rest. */
const LONGEST_SHOWN = 160;
const LONGEST_TITLE = 2000;

export type Child = Node | string | number | null | undefined | false;

type Listeners = {
  [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => unknown;
};

/**
 * Functions become listeners; `true` is an attribute without a value; `false`, `null` and
 * `undefined` are left out.
 */
export type Attributes = Listeners &
  Record<string, string | number | boolean | null | undefined | ((event: never) => unknown)>;

/** An element; strings among its children become text nodes. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes?: Attributes | null,
  ...children: (Child | readonly Child[])[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of a drawing, made as `el` makes those of a page. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes?: Attributes | null,
  ...children: (Child | readonly Child[])[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function filled<E extends Element>(
  element: E,
  attributes: Attributes | null | undefined,
  children: (Child | readonly Child[])[]
): E {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') {
      element.addEventListener(name.replace(/^on/, ''), value as EventListener);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? '' : visible(String(value)));
    }
  }
  append(element, ...children);
  return element;
}

/** Put children at the end of an element. */
export function append(element: Element, ...children: (Child | readonly Child[])[]): void {
  for (const child of children.flat()) {
    if (child instanceof Node) {
      element.append(child);
    } else if (child !== null && child !== undefined && child !== false) {
      element.append(visible(String(child)));
    }
  }
}

/** Put children in the place of those that an element has. */
export function replace(element: Element, ...children: (Child | readonly Child[])[]): void {
  element.replaceChildren();
  append(element, ...children);
}

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}]/gu;

/**
 * A text in which control characters, lone surrogates and marks that change the direction of writing
 * are escapes. Newlines and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, character => {
    if (character === '\n' || character === '\t') {
      return character;
    }
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code < 0x100) {
      return `\\x${digits.padStart(2, '0')}`;
    }
    return code < 0x10000 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
  });
}

/**
 * Somebody's text (a name, a line, a docstring). Its direction of writing does not affect what stands
 * around it. A text of more than `most` characters is cut, with the whole in the tooltip.
 */
export function said(text: string, most = LONGEST_SHOWN): HTMLElement {
  const shown = cut(text, most);
  return el('bdi', shown === text ? null : { title: cut(text, LONGEST_TITLE) }, shown);
}

/** What `said` makes of a text, with the parts between backquotes as code. */
export function coded(text: string, most = LONGEST_SHOWN): HTMLElement {
  const whole = said(text, most);
  const parts = whole.textContent.split('`');
  replace(
    whole,
    parts.map((part, i) => (i % 2 ? el('code', { class: 'pspx-code' }, part) : part))
  );
  return whole;
}

/** The first `most` characters, with an ellipsis if there are more. */
export function cut(text: string, most = LONGEST_SHOWN): string {
  if (text.length <= most) {
    return text;
  }
  const end = most - 1;
  // Not between the two halves of one character.
  const isSplit = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
  return `${text.slice(0, isSplit ? end - 1 : end)}…`;
}

/** Styles for a view, to stand inside its host. */
export function stylesheet(text: string): HTMLElement {
  return el('style', null, text);
}

/** A button; it submits no form. */
export function button(
  look: 'pspx-button' | 'pspx-quiet' | (string & {}),
  onclick: () => unknown,
  content: Child,
  attributes: Attributes = {},
  ...more: Child[]
): HTMLButtonElement {
  return el('button', { class: look, type: 'button', onclick, ...attributes }, content, more);
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
