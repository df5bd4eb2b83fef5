/**
 * What a tab of the panel is, and what all tabs are made of.
 */

import type { Place, Topic } from '../contract';
import type { KernelModel } from '../model';
import { el, said } from '../shared';

export type Tab = {
  readonly name: string;
  readonly label: string;
  /** What the kernel says while the tab is shown. */
  readonly topics: readonly Topic[];
  readonly node: HTMLElement;
  /** Draw what the model knows; called when the tab comes to the front, and after changes. */
  show(model: KernelModel): void;
  dispose?(): void;
};

/** What tabs ask of the page around them. */
export type Page = {
  /** Show a line of the user's code. */
  reveal(place: Place): void;
  /** Whether the user means it. */
  confirm(title: string, text: string, button: string): Promise<boolean>;
  /** Show a program in a tab of the main area; missing where there is only one. */
  openProgram?(model: KernelModel, id: string, name: string): void;
};

/**
 * The session of a kernel that a tab draws. What a tab remembers by the ids of rows is of one
 * session: the model of a kernel outlives a restart, and then ids begin anew.
 */
export class Drawn {
  /** Take this model for the one that is drawn; whether it, or its session, is another one. */
  isOther(model: KernelModel): boolean {
    const isOther = model !== this._model || model.session !== this._session;
    this._model = model;
    this._session = model.session;
    return isOther;
  }

  private _model: KernelModel | null = null;
  private _session: string | null = null;
}

/** A line of the user's code: a button if it can be shown, else text. */
export function placeLink(place: Place | null, page: Page): HTMLElement | null {
  if (!place) {
    return null;
  }
  if (!place.cell) {
    return el('span', { class: 'pspx-muted' }, said(place.text, 80));
  }
  return el(
    'button',
    {
      class: 'pspx-quiet pspx-place',
      type: 'button',
      title: 'Show this line',
      onclick: () => page.reveal(place)
    },
    said(place.text, 80)
  );
}

/** A button with a border. */
export function button(text: string, onclick: () => void, title?: string): HTMLButtonElement {
  return el(
    'button',
    { class: 'pspx-button', type: 'button', title, onclick },
    text
  ) as HTMLButtonElement;
}

/** A sentence where there is nothing to list: `text`, once the kernel has said so. */
export function empty(table: { known: boolean } | undefined, text: string): HTMLElement {
  return el(
    'p',
    { class: 'pspx-muted pspx-nothing' },
    table?.known ? text : 'The kernel is asked.'
  );
}

/** How many rows the kernel forgot, if it did. */
export function forgottenNote(n: number): HTMLElement | null {
  return n ? el('p', { class: 'pspx-muted' }, `${n} older ones are no longer kept.`) : null;
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
