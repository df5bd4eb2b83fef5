/**
 * Wires the panel into JupyterLab and Notebook 7. All that it shows comes from the kernel, over the
 * comm target `perspex.panel`; the contract is `perspex_magics/panel/contract.py`.
 */

import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  MainAreaWidget,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { Follower, pageClient } from './panel/follow';
import { perspexIcon } from './panel/icon';
import { followHeat } from './panel/margin';
import { reveal } from './panel/reveal';
import { PANEL_ID, Sidebar } from './panel/sidebar';
import { offerLesson } from './panel/start';
import type { ISession } from './model/session';
import { CacheTab } from './tabs/cache';
import { DevicesTab } from './tabs/devices';
import { KeysTab } from './tabs/keys';
import { MemoryTab } from './tabs/memory';
import { ProgramDocument, ProgramTab } from './tabs/program';
import type { ITabPage } from './tabs/tab';
import { TimeTab } from './tabs/time';
import { IPerspexPanel } from './tokens';
import { cut, stylesheet } from './views/dom';
import { LOOK } from './views/look';
import { speak, trans } from './views/trans';

export * from './tokens';

const OPEN = 'perspex:open-panel';

const plugin: JupyterFrontEndPlugin<IPerspexPanel> = {
  id: 'perspex:panel',
  description: 'What the Perspex kernel traces, compiles, runs and holds, live.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator, ICommandPalette, ILayoutRestorer, ILabShell, ILauncher],
  provides: IPerspexPanel,
  activate
};

export default plugin;

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  translator: ITranslator | null,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  labShell: ILabShell | null,
  launcher: ILauncher | null
): IPerspexPanel {
  if (translator) {
    speak(translator.load('perspex'));
  }
  const follower = new Follower(tracker, pageClient(window.sessionStorage));
  const page = pageOf(follower, labShell);
  const sidebar = new Sidebar(follower);
  const programs = new ProgramTab(page);
  const show = (session: ISession, id: string) => {
    sidebar.bringToFront(programs.name);
    programs.choose(session, id);
  };
  for (const tab of [
    programs,
    new CacheTab(page, show),
    new TimeTab(page),
    new MemoryTab(page),
    new DevicesTab(page),
    new KeysTab(page)
  ]) {
    sidebar.addTab(tab);
  }
  sidebar.title.icon = perspexIcon;
  sidebar.title.caption = 'Perspex';
  app.shell.add(sidebar, 'right', { rank: 900, type: 'Perspex' });
  restorer?.add(sidebar, PANEL_ID);

  app.commands.addCommand(OPEN, {
    label: trans.__('Perspex Panel'),
    caption: trans.__('Show what the kernel traces, compiles, runs and holds'),
    icon: perspexIcon,
    describedBy: { args: { type: 'object', properties: { tab: { type: 'string' } } } },
    execute: ({ tab }) => {
      if (typeof tab === 'string') {
        sidebar.bringToFront(tab);
      }
      app.shell.activateById(PANEL_ID);
    }
  });
  palette?.addItem({ command: OPEN, category: 'Perspex' });
  offerLesson(app, launcher, palette);
  followHeat(follower);
  return { addTab: make => sidebar.addTab(make(page)) };
}

function pageOf(follower: Follower, labShell: ILabShell | null): ITabPage {
  const page: ITabPage = {
    reveal: place => {
      const missing = () =>
        Notification.info(trans.__('%1 is no longer in this notebook.', place.text), {
          autoClose: 4000
        });
      reveal(follower.notebook, place).then(found => found || missing(), missing);
    },
    confirm: async (title, text, button) => {
      const answer = await showDialog({
        title,
        body: text,
        buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: button })],
        defaultButton: 0
      });
      return answer.button.accept;
    }
  };
  if (labShell) {
    page.openProgram = (session, id, name) =>
      labShell.add(programPage(page, session, id, name), 'main', { mode: 'split-right' });
  }
  return page;
}

/** A program in a tab of the main area. */
function programPage(page: ITabPage, session: ISession, id: string, name: string): Widget {
  const content = new Widget();
  content.addClass('pspx-page');
  content.addClass('pspx-view');
  const document = new ProgramDocument({ ...page, openProgram: undefined });
  content.node.append(stylesheet(LOOK), document.node);
  const main = new MainAreaWidget({ content });
  main.title.label = cut(name, 40);
  main.title.icon = perspexIcon;
  main.title.closable = true;
  content.disposed.connect(() => document.dispose());
  void document.show(session, id);
  return main;
}
