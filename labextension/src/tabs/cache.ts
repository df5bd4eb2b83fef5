/** *Cache*: every compiled program, where it was found, what it took, and why it was recompiled. */

import type { ISession } from '../model/session';
import { type CacheView, cacheView } from '../views/cache/view';
import { el } from '../views/dom';
import { trans } from '../views/trans';
import type { ITab, ITabPage } from './tab';

export class CacheTab implements ITab {
  readonly name = 'cache';
  readonly label = trans.__('Cache');
  readonly topics = ['programs'] as const;
  readonly node = el('div');

  /** `show` brings a program to the front. */
  constructor(page: ITabPage, show: (session: ISession, id: string) => void) {
    const ask = async (question: Parameters<ISession['ask']>[0]) =>
      (await this._session?.ask(question))?.text ?? '';
    this._view = cacheView(this.node, {
      evict: id => ask({ what: 'evict', id }),
      pin: id => ask({ what: 'pin', id }),
      unpin: id => ask({ what: 'unpin', id }),
      clear: () => ask({ what: 'clear' }),
      show: id => this._session && show(this._session, id),
      reveal: place => page.reveal(place)
    });
  }

  show(session: ISession): void {
    if (session !== this._session) {
      this._session = session;
      this._view.forget();
    }
    this._view.update(session.tables.programs.inOrder());
  }

  dispose(): void {
    this._view.dispose();
  }

  private readonly _view: CacheView;
  private _session: ISession | null = null;
}
