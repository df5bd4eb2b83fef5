/**
 * What all views of Perspex are made of: elements, text that may be anybody's, numbers with units.
 *
 * Text is only ever put into text nodes and attributes, never parsed as markup, and characters that
 * are invisible or reorder their neighbours become escapes that can be seen. `perspex_magics.display.markup`
 * is the same for HTML that Python writes.
 */

/** How much of a text that somebody else wrote is shown; the rest is in the tooltip. */
const LONGEST_SHOWN = 160;
const LONGEST_TITLE = 2000;

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

/**
 * An element.
 *
 * @param {string} tag
 * @param {Attributes | null} [attributes] `onclick` and other functions become listeners; `true` is
 *   an attribute without a value; `false`, `null` and `undefined` are left out.
 * @param {...(Child | Child[])} children strings become text nodes.
 * @returns {HTMLElement}
 */
export function el(tag, attributes, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/**
 * An element of a drawing, as `el` makes those of a page.
 *
 * @param {string} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return /** @type {SVGElement} */ (filled(element, attributes, children));
}

/**
 * @param {Element} element
 * @param {Attributes | null | undefined} attributes
 * @param {(Child | Child[])[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(name.replace(/^on/, ""), value);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : visible(String(value)));
    }
  }
  append(element, ...children);
  return element;
}

/**
 * Put children at the end of an element.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function append(element, ...children) {
  for (const child of children.flat()) {
    if (child instanceof Node) {
      element.append(child);
    } else if (child !== null && child !== undefined && child !== false) {
      element.append(visible(String(child)));
    }
  }
}

/**
 * Put children in the place of those that an element has.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, ...children);
}

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}]/gu;

/**
 * A text in which control characters, lone surrogates and those that change the direction of
 * writing are escapes. Newlines and tabs stay.
 *
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
  return text.replace(HIDDEN, (character) => {
    if (character === "\n" || character === "\t") {
      return character;
    }
    const code = /** @type {number} */ (character.codePointAt(0));
    const digits = code.toString(16);
    if (code < 0x100) {
      return "\\x" + digits.padStart(2, "0");
    }
    return code < 0x10000 ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
  });
}

/**
 * Somebody's text (a name, a line, a docstring): apart from the direction of what stands around it,
 * and cut where it is too long, with the whole as its tooltip.
 *
 * @param {string} text
 * @param {number} [most] characters.
 * @returns {HTMLElement}
 */
export function said(text, most = LONGEST_SHOWN) {
  const shown = cut(text, most);
  return el("bdi", shown === text ? null : { title: cut(text, LONGEST_TITLE) }, shown);
}

/**
 * What `said` makes of a text, with what stands between backquotes as code.
 *
 * @param {string} text
 * @param {number} [most] characters.
 * @returns {HTMLElement}
 */
export function coded(text, most = LONGEST_SHOWN) {
  const whole = said(text, most);
  const parts = (whole.textContent ?? "").split("`");
  replace(whole, parts.map((part, i) => (i % 2 ? el("code", { class: "pspx-code" }, part) : part)));
  return whole;
}

/**
 * The first `most` characters, and an ellipsis where there are more.
 *
 * @param {string} text
 * @param {number} [most]
 * @returns {string}
 */
export function cut(text, most = LONGEST_SHOWN) {
  if (text.length <= most) {
    return text;
  }
  const end = most - 1;
  // Not between the two halves of one character.
  const split = /[\uD800-\uDBFF]/.test(text[end - 1]);
  return text.slice(0, split ? end - 1 : end) + "…";
}

/**
 * Three digits of a number: `1.23`, `12.3`, `123`.
 *
 * @param {number} value
 * @returns {string}
 */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/**
 * A span of time: `870 ns`, `12.3 µs`, `1.20 ms`, `3.40 s`, `2 min 05 s`; a dash where there is none.
 *
 * @param {number | null | undefined} seconds
 * @returns {string}
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) {
    return "–";
  }
  const size = Math.abs(seconds);
  if (size === 0) {
    return "0 s";
  }
  if (size < 999.5e-9) {
    return `${(seconds * 1e9).toFixed(0)} ns`;
  }
  if (size < 999.5e-6) {
    return `${digits(seconds * 1e6)} µs`;
  }
  if (size < 0.9995) {
    return `${digits(seconds * 1e3)} ms`;
  }
  if (size < 99.95) {
    return `${digits(seconds)} s`;
  }
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

/**
 * A number of bytes, in powers of 1000: `12 B`, `2.33 kB`, `1.20 GB`.
 *
 * @param {number | null | undefined} bytes
 * @returns {string}
 */
export function size(bytes) {
  return bytes === null || bytes === undefined ? "–" : withUnit(bytes, "B");
}

/**
 * A number of things: `950`, `12.3 k`, `4.50 M`.
 *
 * @param {number | null | undefined} n
 * @returns {string}
 */
export function count(n) {
  return n === null || n === undefined ? "–" : withUnit(n, "").trimEnd();
}

/**
 * @param {number} value
 * @param {string} unit
 */
function withUnit(value, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 999.5 && i < prefixes.length - 1) {
    scaled /= 1000;
    i += 1;
  }
  const text = i === 0 && Number.isInteger(value) ? String(value) : digits(scaled);
  return `${text} ${prefixes[i]}${unit}`;
}

/**
 * Styles for a view, to stand inside its host; the same text is the same element's content.
 *
 * @param {string} text
 * @returns {HTMLElement}
 */
export function stylesheet(text) {
  return el("style", null, text);
}
