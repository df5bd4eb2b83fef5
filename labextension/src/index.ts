/**
 * Wires the panel into JupyterLab and Notebook 7. All that it shows comes from the kernel, over the
 * comm target `perspex.panel`; the contract is `perspex_magics/panel/schema.json`.
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
import { INotebookTracker } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { Follower, pageClient } from './follow';
import { HeatMap } from './heat';
import { perspexIcon } from './icon';
import type { KernelModel } from './model';
import { reveal } from './reveal';
import { LOOK, stylesheet } from './shared';
import { PANEL_ID, Sidebar } from './sidebar';
import { CacheTab } from './tabs/cache';
import { KeysTab } from './tabs/keys';
import { MemoryTab } from './tabs/memory';
import { ProgramDocument, ProgramTab } from './tabs/program';
import type { Page } from './tabs/tab';
import { TimeTab } from './tabs/time';

const OPEN = 'perspex:open-panel';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'perspex:panel',
  description: 'What the Perspex kernel traced, compiled, ran and holds, live.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILayoutRestorer, ILabShell],
  activate
};

export default plugin;

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  labShell: ILabShell | null
): void {
  const follower = new Follower(tracker, pageClient(window.sessionStorage));
  const page: Page = {
    reveal: place =>
      void reveal(follower.notebook, place).then(found => {
        if (!found) {
          Notification.info(`${place.text} is not in this notebook any more.`, {
            autoClose: 4000
          });
        }
      }),
    confirm: async (title, text, button) => {
      const answer = await showDialog({
        title,
        body: text,
        buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: button })],
        defaultButton: 0
      });
      return answer.button.accept;
    },
    openProgram: labShell
      ? (model, id, name) =>
          labShell.add(programPage(page, model, id, name), 'main', { mode: 'split-right' })
      : undefined
  };
  const programs = new ProgramTab(page);
  const sidebar = new Sidebar(follower, [
    programs,
    new CacheTab(page, (model, id) => {
      sidebar.bringToFront(programs.name);
      programs.choose(model, id);
    }),
    new TimeTab(page),
    new MemoryTab(page),
    new KeysTab(page)
  ]);
  sidebar.title.icon = perspexIcon;
  sidebar.title.caption = 'Perspex';
  app.shell.add(sidebar, 'right', { rank: 900, type: 'Perspex' });
  restorer?.add(sidebar, PANEL_ID);

  app.commands.addCommand(OPEN, {
    label: 'Perspex Panel',
    caption: 'Show what the kernel traced, compiled, ran and holds',
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
  followHeat(follower);
}

/** A program in a tab of its own. */
function programPage(page: Page, model: KernelModel, id: string, name: string): Widget {
  const content = new Widget();
  content.addClass('pspx-page');
  content.addClass('pspx-view');
  const document = new ProgramDocument({ ...page, openProgram: undefined });
  content.node.append(stylesheet(LOOK), document.node);
  const main = new MainAreaWidget({ content });
  main.title.label = name.length > 40 ? `${name.slice(0, 39)}…` : name;
  main.title.icon = perspexIcon;
  main.title.closable = true;
  content.disposed.connect(() => document.dispose());
  void document.show(model, id);
  return main;
}

/** Draw device times in the notebook's cells while the kernel measures them. */
function followHeat(follower: Follower): void {
  const heat = new HeatMap();
  const none: never[] = [];
  let model: KernelModel | null = null;
  let frame = 0;
  const draw = () => {
    frame = 0;
    const notebook = follower.notebook?.content;
    const on = model?.profiling ?? false;
    model?.look('heat', on ? ['lines'] : []);
    if (notebook && !notebook.isDisposed) {
      heat.show(notebook, on ? model!.tables.lines.inOrder() : none);
    }
  };
  const schedule = () => {
    frame ||= requestAnimationFrame(draw);
  };
  const follow = () => {
    if (follower.model !== model) {
      model?.changed.disconnect(schedule);
      model = follower.model;
      model?.changed.connect(schedule);
    }
    schedule();
  };
  follower.changed.connect(follow);
  follow();
}
