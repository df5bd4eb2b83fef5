/**
 * Keeps the children of an element in step with a list of rows.
 *
 * A row that is the same object as before keeps its element, so a session of thousands of rows costs
 * what changed of it. Only the first page is drawn until somebody asks for more. The keyboard's focus
 * stays where it was when the element around it is made again.
 */

import { el, replace } from '../shared';

const FOCUSABLE = 'button, input, summary, select, [tabindex]';

export class Rows<R extends { id: string }> {
  /**
   * `make` draws one row; `more` is where the button for further ones stands.
   */
  constructor(
    private _host: HTMLElement,
    private _more: HTMLElement,
    private _make: (row: R) => HTMLElement,
    private _page = 100
  ) {
    this._shown = _page;
  }

  update(rows: readonly R[]): void {
    const shown = rows.slice(0, this._shown);
    const now = new Map<string, { row: R; element: HTMLElement }>();
    let next = this._host.firstElementChild;
    for (const row of shown) {
      const before = this._drawn.get(row.id);
      let element = before?.element;
      if (!before || before.row !== row) {
        element = this._make(row);
        if (before) {
          next = next === before.element ? element : next;
          this._exchange(before.element, element);
        }
      }
      if (element !== next) {
        this._host.insertBefore(element!, next);
      } else {
        next = next!.nextElementSibling;
      }
      now.set(row.id, { row, element: element! });
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

  private _exchange(before: HTMLElement, after: HTMLElement): void {
    const focused = before.ownerDocument.activeElement;
    const index =
      focused && before.contains(focused)
        ? [before, ...before.querySelectorAll(FOCUSABLE)].indexOf(focused as HTMLElement)
        : -1;
    before.replaceWith(after);
    if (index >= 0) {
      const candidates = [after, ...after.querySelectorAll<HTMLElement>(FOCUSABLE)];
      (candidates[index] as HTMLElement | undefined)?.focus({ preventScroll: true });
    }
  }

  private _offerMore(rows: readonly R[]): void {
    const left = rows.length - this._shown;
    if (left === this._left) {
      return;
    }
    this._left = left;
    replace(
      this._more,
      left > 0 &&
        el(
          'button',
          {
            class: 'pspx-button',
            type: 'button',
            onclick: () => {
              this._shown += 5 * this._page;
              this.update(rows);
            }
          },
          `Show more (${left} left)`
        )
    );
  }

  private _drawn = new Map<string, { row: R; element: HTMLElement }>();
  private _shown: number;
  private _left = 0;
}
