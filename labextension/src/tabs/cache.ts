/**
 * *Cache*: every compiled program, where it was found, what it took, and why it was compiled again.
 */

import type { KernelModel } from '../model';
import { cacheView, el } from '../shared';
import { Drawn, type Page, type Tab } from './tab';

export class CacheTab implements Tab {
  readonly name = 'cache';
  readonly label = 'Cache';
  readonly topics = ['programs'] as const;
  readonly node = el('div');

  /** `show` brings a program to the front. */
  constructor(page: Page, show: (model: KernelModel, id: string) => void) {
    const ask = (what: 'evict' | 'pin' | 'unpin' | 'clear') => async (id?: string) =>
      (await this._model!.ask(id === undefined ? { what } : { what, id })).text;
    const clear = ask('clear');
    this._view = cacheView(this.node, {
      evict: ask('evict'),
      pin: ask('pin'),
      unpin: ask('unpin'),
      clear: () => clear(),
      show: id => show(this._model!, id),
      reveal: place => page.reveal(place)
    });
  }

  show(model: KernelModel): void {
    if (this._drawn.isOther(model)) {
      this._model = model;
      this._view.forget();
    }
    this._view.update(model.tables.programs.inOrder());
  }

  dispose(): void {
    this._view.dispose();
  }

  private _view: ReturnType<typeof cacheView>;
  private _model: KernelModel | null = null;
  private _drawn = new Drawn();
}
