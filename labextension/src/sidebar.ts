/**
 * The panel: which kernel it shows, the tabs, and the one tab that is in front.
 *
 * What is not in sight costs nothing: the kernel is told of the front tab's topics only, and of none
 * while the panel is hidden. Changes are drawn once in a frame.
 */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { Topic } from './contract';
import type { Follower } from './follow';
import type { KernelModel, State } from './model';
import { append, el, LOOK, replace, said, stylesheet } from './shared';
import { button, type Tab } from './tabs/tab';

export const PANEL_ID = 'perspex-panel';

/** Followed by the panel whatever its tab, because what was missed is not measured afterwards. */
const ALWAYS: readonly Topic[] = ['memory'];

export class Sidebar extends Widget {
  constructor(
    private _follower: Follower,
    private _tabs: readonly Tab[]
  ) {
    super();
    this.id = PANEL_ID;
    this.addClass('pspx-panel');
    this.addClass('pspx-view');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Perspex');
    this._front = _tabs[0];
    this._strip = el(
      'div',
      { class: 'pspx-tabs', role: 'tablist', 'aria-label': 'Views' },
      _tabs.map(tab =>
        el(
          'button',
          {
            type: 'button',
            role: 'tab',
            id: `${PANEL_ID}-tab-${tab.name}`,
            'aria-controls': `${PANEL_ID}-${tab.name}`,
            onclick: () => this.bringToFront(tab.name)
          },
          tab.label
        )
      )
    );
    this._mark();
    this._strip.addEventListener('keydown', event => this._onKey(event));
    append(
      this.node,
      stylesheet(LOOK),
      el('div', { class: 'pspx-head' }, this._title, this._about),
      this._strip,
      this._say,
      _tabs.map(tab => {
        tab.node.id = `${PANEL_ID}-${tab.name}`;
        tab.node.classList.add('pspx-tab');
        tab.node.setAttribute('role', 'tabpanel');
        tab.node.setAttribute('aria-labelledby', `${PANEL_ID}-tab-${tab.name}`);
        return tab.node;
      })
    );
    _follower.changed.connect(this._onFollow, this);
    this._onFollow();
  }

  /** Show the tab of this name. */
  bringToFront(name: string): void {
    this._front = this._tabs.find(tab => tab.name === name) ?? this._front;
    this._mark();
    this._look();
    this._schedule();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._follower.changed.disconnect(this._onFollow, this);
    this._model?.changed.disconnect(this._schedule, this);
    this._model?.look(PANEL_ID, []);
    this._tabs.forEach(tab => tab.dispose?.());
    super.dispose();
  }

  protected onAfterShow(_: Message): void {
    this._look();
    this._schedule();
  }

  protected onAfterHide(_: Message): void {
    this._look();
  }

  protected onAfterAttach(_: Message): void {
    this._look();
    this._schedule();
  }

  protected onBeforeDetach(_: Message): void {
    this._model?.look(PANEL_ID, []);
  }

  protected onActivateRequest(_: Message): void {
    this._strip.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }

  private _onFollow(): void {
    const model = this._follower.model;
    if (model !== this._model) {
      this._model?.changed.disconnect(this._schedule, this);
      if (this._model && !this._model.isDisposed) {
        this._model.look(PANEL_ID, []);
      }
      this._model = model;
      model?.changed.connect(this._schedule, this);
      this._look();
    }
    this._schedule();
  }

  private _look(): void {
    this._model?.look(PANEL_ID, this.isVisible ? [...ALWAYS, ...this._front.topics] : []);
  }

  private _schedule(): void {
    if (!this._frame && this.isVisible) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._draw();
      });
    }
  }

  private _draw(): void {
    const model = this._model;
    const state = model?.state;
    const name = this._follower.notebook?.title.label ?? '';
    const hello = state?.is === 'live' ? state.hello : null;
    this._write(this._title, name);
    this._write(
      this._about,
      hello ? `Perspex ${hello.perspex} · jaxlib ${hello.jaxlib} · ${hello.platform}` : ''
    );
    if (state !== this._told) {
      this._told = state;
      const advice = adviceOn(state, model);
      replace(this._say, advice);
      this._say.hidden = !advice.length;
    }
    this._strip.hidden = !hello;
    for (const tab of this._tabs) {
      tab.node.hidden = !(tab === this._front && hello);
    }
    if (hello) {
      this._front.show(model!);
    }
  }

  /** Which tab is in front, as the strip says it. */
  private _mark(): void {
    this._tabs.forEach((tab, i) => {
      const front = tab === this._front;
      this._strip.children[i].setAttribute('aria-selected', String(front));
      this._strip.children[i].setAttribute('tabindex', front ? '0' : '-1');
    });
  }

  private _write(element: HTMLElement, text: string): void {
    if (element.dataset.text !== text) {
      element.dataset.text = text;
      replace(element, said(text, 120));
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const at = this._tabs.indexOf(this._front);
    const n = this._tabs.length;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + n, Home: 0, End: n - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.bringToFront(this._tabs[to % n].name);
      (this._strip.children[to % n] as HTMLElement).focus();
    }
  }

  private _model: KernelModel | null = null;
  private _front: Tab;
  private _frame = 0;
  private _told: State | undefined | null = null;
  private _title = el('div', { class: 'pspx-title pspx-ellipsis' });
  private _about = el('div', { class: 'pspx-muted pspx-small pspx-ellipsis' });
  private _say = el('div', { class: 'pspx-say', role: 'status' });
  private _strip: HTMLElement;
}

/** What stands in the place of the tabs while there is nothing to show in them. */
export function adviceOn(state: State | undefined, model: KernelModel | null): Node[] {
  const paragraph = (...parts: (Node | string)[]) => el('p', null, ...parts);
  const code = (text: string) => el('code', null, text);
  const again = () => button('Try again', () => model?.retry());
  switch (state?.is) {
    case undefined:
      return [paragraph('Open a notebook with a kernel; the panel shows what happens in it.')];
    case 'unasked':
    case 'connecting':
      return [paragraph('Waiting for the kernel.')];
    case 'live':
      return [];
    case 'absent':
      return [
        paragraph('Perspex is not loaded in this kernel. Run ', code('%load_ext perspex'), '.'),
        paragraph('Where that fails, install it first: ', code('pip install perspex'), '.'),
        again()
      ];
    case 'foreign':
      return [
        paragraph('Perspex works in Python; this kernel runs ', said(state.language, 40), '.')
      ];
    case 'version':
      return [
        paragraph(
          `The kernel has Perspex ${state.perspex}, which speaks version ${state.theirs} of the `,
          'protocol; this page speaks another. Install one Perspex for both the server and the ',
          'kernel, and reload the page.'
        )
      ];
    case 'closed':
      return [
        paragraph('The kernel closed the connection. Another page may have taken its place.'),
        again()
      ];
    case 'elsewhere':
      return [
        paragraph(
          'Another document of this page, such as a console, was opened first on this kernel and ',
          'gets its messages. Close it and open the notebook again.'
        )
      ];
    case 'dead':
      return [paragraph('The kernel is dead. Restart it.')];
  }
}
