/** What a tab of the panel is, and what all tabs are made of. */

import type { Place, Topic } from '../contract';
import type { ISession } from '../model/session';
import { button, el, said } from '../views/dom';
import { trans } from '../views/trans';
import { count } from '../views/units';

export interface ITab {
  /** Names the tab in commands and ids: letters, digits and hyphens. */
  readonly name: string;
  readonly label: string;
  /** What the kernel sends while the tab is shown. */
  readonly topics: readonly Topic[];
  readonly node: HTMLElement;
  /** Draw what the session holds; called when the tab comes to the front, and after changes. */
  show(session: ISession): void;
  dispose?(): void;
}

/** What the panel offers to tabs. */
export interface ITabPage {
  /** Show a line of the user's code. */
  reveal(place: Place): void;
  /** Ask the user; whether they agree. */
  confirm(title: string, text: string, button: string): Promise<boolean>;
  /** Show a program in a tab of the main area; missing where there is only one. */
  openProgram?(session: ISession, id: string, name: string): void;
}

/** A line of the user's code: a button if it can be shown, otherwise text. */
export function placeLink(place: Place | null, page: ITabPage): HTMLElement | null {
  if (!place) {
    return null;
  }
  const text = said(place.text, 80);
  return place.cell
    ? button('pspx-quiet pspx-place', () => page.reveal(place), text, {
        title: trans.__('Show this line')
      })
    : el('span', { class: 'pspx-muted' }, text);
}

/** A sentence where there is nothing to list: `text`, once the kernel has sent the table. */
export function empty(table: { known: boolean }, text: string): HTMLElement {
  return el('p', { class: 'pspx-muted pspx-nothing' }, table.known ? text : trans.__('Loading...'));
}

/** How many rows the kernel dropped, if it did. */
export function forgottenNote(n: number): HTMLElement | null {
  const text = trans._n(
    '%2 older entry is no longer kept.',
    '%2 older entries are no longer kept.',
    n,
    count(n)
  );
  return n ? el('p', { class: 'pspx-muted' }, text) : null;
}

/** A part of a whole as the width of a bar. */
export function percent(part: number, whole: number): string {
  return `${whole > 0 ? (100 * Math.min(1, Math.max(0, part / whole))).toFixed(2) : 0}%`;
}

/** A bar of the width `own`, followed by a hatched one of the width `also`. */
export function shareBar(own: string, also = '0%'): HTMLElement {
  return el(
    'span',
    { class: 'pspx-share', 'aria-hidden': 'true' },
    el('span', { class: 'pspx-share-own', style: `width:${own}` }),
    el('span', { class: 'pspx-share-also', style: `width:${also}` })
  );
}

/** The head of a table; its first column is text. */
export function heads(...titles: string[]): HTMLElement {
  return el(
    'thead',
    null,
    el(
      'tr',
      null,
      titles.map((title, i) => el('th', { scope: 'col', class: i ? null : 'pspx-left' }, title))
    )
  );
}
