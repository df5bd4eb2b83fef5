/**
 * Keeps the children of an element in step with a list of rows.
 *
 * A row that is the same object as before keeps its element, so in a session of thousands of rows only
 * changes cost time. Only the first page is drawn until somebody asks for more. The keyboard's focus
 * stays where it was when the element around it is made again.
 */

import { button, replace } from '../views/dom';
import { trans } from '../views/trans';
import { count } from '../views/units';

const FOCUSABLE = 'button, input, summary, select, [tabindex]';

export class Rows<R extends { id: string }> {
  /** `make` draws one row; the button for further rows stands in `more`. */
  constructor(
    private readonly _host: HTMLElement,
    private readonly _more: HTMLElement,
    private readonly _make: (row: R) => HTMLElement,
    private readonly _page = 100
  ) {
    this._shown = _page;
  }

  update(rows: readonly R[]): void {
    const now = new Map<string, { row: R; element: HTMLElement }>();
    let next = this._host.firstElementChild;
    for (const row of rows.slice(0, this._shown)) {
      const before = this._drawn.get(row.id);
      const element = before?.row === row ? before.element : this._make(row);
      if (before && before.element !== element) {
        next = next === before.element ? element : next;
        exchange(before.element, element);
      }
      if (element === next) {
        next = next.nextElementSibling;
      } else {
        this._host.insertBefore(element, next);
      }
      now.set(row.id, { row, element });
    }
    for (const [id, { element }] of this._drawn) {
      if (now.get(id)?.element !== element) {
        element.remove();
      }
    }
    this._drawn = now;
    this._offerMore(rows);
  }

  /** Draw all rows again at the next update. */
  forget(): void {
    this._drawn.clear();
    this._host.replaceChildren();
  }

  private _offerMore(rows: readonly R[]): void {
    const left = rows.length - this._shown;
    if (left === this._left) {
      return;
    }
    this._left = left;
    const more = () => {
      this._shown += 5 * this._page;
      this.update(rows);
    };
    const text = trans.__('Show more (%1 left)', count(left));
    replace(this._more, left > 0 && button('pspx-button', more, text));
  }

  private _drawn = new Map<string, { row: R; element: HTMLElement }>();
  private _shown: number;
  private _left = 0;
}

/** Put an element in the place of another, and its focus, too. */
function exchange(before: HTMLElement, after: HTMLElement): void {
  const focused = before.ownerDocument.activeElement;
  const inside = (element: HTMLElement) => [
    element,
    ...element.querySelectorAll<HTMLElement>(FOCUSABLE)
  ];
  const at = inside(before).findIndex(element => element === focused);
  before.replaceWith(after);
  inside(after)[at]?.focus({ preventScroll: true });
}
