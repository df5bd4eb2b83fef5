/** The card "Getting started" of the Launcher: the tutorial as a notebook. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ILauncher } from '@jupyterlab/launcher';
import { LESSON, LOGO } from '../lesson';
import { trans } from '../views/trans';
import { perspexIcon } from './icon';

const START = 'perspex:getting-started';
const NAME = 'getting-started.ipynb';

/** The tutorial as Jupyter keeps notebooks. */
export function lesson(): object {
  return {
    cells: LESSON.map(([kind, source], place) => ({
      cell_type: kind,
      id: `lesson-${place + 1}`,
      metadata: {},
      source,
      ...(kind === 'code' ? { execution_count: null, outputs: [] } : {})
    })),
    metadata: { kernelspec: { name: 'perspex', display_name: 'Perspex', language: 'python' } },
    nbformat: 4,
    nbformat_minor: 5
  };
}

/** Add the card, and the command to the palette; both are optional, as in Notebook 7. */
export function offerLesson(
  app: JupyterFrontEnd,
  launcher: ILauncher | null,
  palette: ICommandPalette | null
): void {
  app.commands.addCommand(START, {
    label: trans.__('Getting started'),
    caption: trans.__('Open the first hour with Perspex as a notebook'),
    icon: perspexIcon,
    describedBy: { args: { type: 'object', properties: { cwd: { type: 'string' } } } },
    execute: async ({ cwd }) => {
      const { contents } = app.serviceManager;
      const path = typeof cwd === 'string' && cwd ? `${cwd}/${NAME}` : NAME;
      // One that is there may have notes in it.
      const exists = await contents.get(path, { content: false }).then(
        () => true,
        () => false
      );
      if (!exists) {
        await contents.save(path, { type: 'notebook', format: 'json', content: lesson() });
      }
      await app.commands.execute('docmanager:open', { path });
    }
  });
  launcher?.add({ command: START, category: 'Notebook', rank: 1, kernelIconUrl: LOGO });
  palette?.addItem({ command: START, category: 'Perspex' });
}
