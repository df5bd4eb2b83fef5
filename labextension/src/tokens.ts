/** What other extensions can use of the panel. */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ITab, ITabPage } from './tabs/tab';

export type { ITab, ITabPage } from './tabs/tab';
export type { ISession } from './model/session';
export type { ITable } from './model/table';

/** The panel of Perspex. */
export interface IPerspexPanel {
  /**
   * Add a tab behind the others. `make` is called once, with what the panel offers to tabs; disposing
   * the result removes the tab.
   */
  addTab(make: (page: ITabPage) => ITab): IDisposable;
}

export const IPerspexPanel = new Token<IPerspexPanel>(
  'perspex:IPerspexPanel',
  'The panel of Perspex, to which an extension can add tabs.'
);
