/**
 * The panel: which kernel it shows, its tabs, and the tab in front.
 *
 * Only what is in sight costs anything: the kernel sends the topics of the front tab, and none while
 * the panel is hidden. Changes are drawn once per frame.
 */

import { DisposableDelegate, type IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { BadgeRow, Topic } from '../contract';
import type { Connection, State } from '../model/connection';
import type { ITab } from '../tabs/tab';
import { append, button, el, replace, said, stylesheet } from '../views/dom';
import { LOOK } from '../views/look';
import { trans } from '../views/trans';
import { adviceOn } from './advice';
import type { IFollower } from './follow';

export const PANEL_ID = 'perspex-panel';

/** Shown whatever the tab, because the past cannot be measured later. */
const ALWAYS: readonly Topic[] = ['memory', 'badges'];

type Page = { readonly tab: ITab; readonly button: HTMLElement };

export class Sidebar extends Widget {
  constructor(private readonly _follower: IFollower) {
    super();
    this.id = PANEL_ID;
    this.addClass('pspx-panel');
    this.addClass('pspx-view');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Perspex');
    this._strip.addEventListener('keydown', event => this._onKey(event));
    append(
      this.node,
      stylesheet(LOOK),
      el('div', { class: 'pspx-head' }, this._title, this._restart, this._about),
      this._strip,
      this._say
    );
    _follower.changed.connect(this._onFollow, this);
    this._onFollow();
  }

  /** Add a tab behind the others; disposing the result removes it. */
  addTab(tab: ITab): IDisposable {
    if (this._pages.some(page => page.tab.name === tab.name)) {
      throw new Error(`The panel already has a tab with the name ${tab.name}.`);
    }
    const button = el(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `${PANEL_ID}-tab-${tab.name}`,
        'aria-controls': `${PANEL_ID}-${tab.name}`,
        onclick: () => this.bringToFront(tab.name)
      },
      tab.label
    );
    tab.node.id = `${PANEL_ID}-${tab.name}`;
    tab.node.classList.add('pspx-tab');
    tab.node.setAttribute('role', 'tabpanel');
    tab.node.setAttribute('aria-labelledby', button.id);
    const page = { tab, button };
    this._pages.push(page);
    this._strip.append(button);
    this.node.append(tab.node);
    this._turnTo(this._front ?? page);
    return new DisposableDelegate(() => this._removeTab(page));
  }

  /** Show the tab with this name. */
  bringToFront(name: string): void {
    this._turnTo(this._pages.find(page => page.tab.name === name) ?? this._front);
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    cancelAnimationFrame(this._frame);
    this._follower.changed.disconnect(this._onFollow, this);
    this._connection?.changed.disconnect(this._schedule, this);
    this._connection?.look(PANEL_ID, []);
    this._pages.splice(0).forEach(page => page.tab.dispose?.());
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
    this._connection?.look(PANEL_ID, []);
  }

  protected onActivateRequest(_: Message): void {
    this._front?.button.focus();
  }

  private _removeTab(page: Page): void {
    const at = this._pages.indexOf(page);
    if (at < 0) {
      return;
    }
    this._pages.splice(at, 1);
    page.button.remove();
    page.tab.node.remove();
    page.tab.dispose?.();
    this._turnTo(this._front === page ? this._pages[0] : this._front);
  }

  private _turnTo(front: Page | undefined): void {
    this._front = front;
    for (const page of this._pages) {
      page.button.setAttribute('aria-selected', String(page === front));
      page.button.setAttribute('tabindex', page === front ? '0' : '-1');
    }
    this._look();
    this._schedule();
  }

  private _onFollow(): void {
    const { connection } = this._follower;
    if (connection !== this._connection) {
      this._connection?.changed.disconnect(this._schedule, this);
      if (this._connection && !this._connection.isDisposed) {
        this._connection.look(PANEL_ID, []);
      }
      this._connection = connection;
      connection?.changed.connect(this._schedule, this);
      this._look();
    }
    this._schedule();
  }

  private _look(): void {
    const topics = [...ALWAYS, ...(this._front?.tab.topics ?? [])];
    this._connection?.look(PANEL_ID, this.isVisible ? topics : []);
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
    const connection = this._connection;
    const state = connection?.state;
    const hello = state?.is === 'live' ? state.hello : null;
    write(this._title, this._follower.name);
    write(
      this._about,
      hello ? `Perspex ${hello.perspex} · jaxlib ${hello.jaxlib} · ${hello.platform}` : ''
    );
    if (state?.is !== this._told?.is) {
      replace(this._restart, hello && this._offerRestart());
    }
    if (state !== this._told) {
      this._told = state;
      const advice = adviceOn(state, () => connection?.retry());
      replace(this._say, advice);
      this._say.hidden = !advice.length;
    }
    this._strip.hidden = !hello;
    for (const page of this._pages) {
      page.tab.node.hidden = !(page === this._front && hello);
    }
    if (hello && connection) {
      this._front?.tab.show(connection.session);
      this._mark(connection.session.tables.badges.inOrder());
    }
  }

  private _offerRestart(): HTMLElement {
    return button('pspx-button', () => this._confirmRestart(), trans.__('Restart…'), {
      title: trans.__('Restart the kernel and keep the variables')
    });
  }

  /** A running cell ends, which is why the panel asks. The kernel answers only if it cannot. */
  private _confirmRestart(): void {
    const back = () => replace(this._restart, this._offerRestart());
    const go = () => {
      const session = this._connection?.session;
      replace(this._restart, trans.__('Restarting…'));
      void session?.ask({ what: 'restart' }).then(({ text }) => {
        if (!session.isOver) {
          replace(this._restart, said(text, 200), ' ', this._offerRestart());
        }
      });
    };
    const cancel = button('pspx-button', back, trans.__('Cancel'));
    replace(
      this._restart,
      trans.__('End the running cell, restart the kernel, and keep the variables?'),
      button('pspx-button', go, trans.__('Restart')),
      cancel
    );
    cancel.focus();
  }

  /** Mark the tabs in which there is something to look at. */
  private _mark(badges: readonly BadgeRow[]): void {
    if (badges === this._badges) {
      return;
    }
    this._badges = badges;
    for (const { tab, button } of this._pages) {
      const found = badges.filter(badge => badge.tab === tab.name);
      const text = found.map(badge => badge.text).join(' ');
      const n = found.reduce((sum, badge) => sum + badge.count, 0);
      button.title = text;
      replace(
        button,
        tab.label,
        n > 0 && el('span', { class: 'pspx-badge', 'aria-hidden': 'true' }, n > 99 ? '99+' : n),
        n > 0 && el('span', { class: 'pspx-hidden' }, said(`: ${text}`, 300))
      );
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const at = this._pages.findIndex(page => page === this._front);
    const n = this._pages.length;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + n, Home: 0, End: n - 1 }[event.key];
    const page = to === undefined ? undefined : this._pages[to % n];
    if (page) {
      event.preventDefault();
      this._turnTo(page);
      page.button.focus();
    }
  }

  private readonly _pages: Page[] = [];
  private _badges: readonly BadgeRow[] = [];
  private _front: Page | undefined;
  private _connection: Connection | null = null;
  private _frame = 0;
  private _told: State | undefined | null = null;
  private readonly _title = el('div', { class: 'pspx-title pspx-ellipsis' });
  private readonly _about = el('div', { class: 'pspx-muted pspx-small pspx-ellipsis' });
  private readonly _restart = el('span', { class: 'pspx-row', role: 'status' });
  private readonly _say = el('div', { class: 'pspx-say', role: 'status' });
  private readonly _strip = el('div', {
    class: 'pspx-tabs',
    role: 'tablist',
    'aria-label': trans.__('Views')
  });
}

/** Write a text, unless it stands there already. */
function write(element: HTMLElement, text: string): void {
  if (element.dataset.text !== text) {
    element.dataset.text = text;
    replace(element, said(text, 120));
  }
}
