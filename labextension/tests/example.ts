import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IPerspexPanel, type ISession, type ITab } from 'perspex';

/** Counts the programs that XLA compiled. */
class CountTab implements ITab {
  readonly name = 'count';
  readonly label = 'Count';
  readonly topics = ['programs'] as const;
  readonly node = document.createElement('p');

  show(session: ISession): void {
    const rows = session.tables.programs.inOrder();
    const compiled = rows.filter(row => row.found === 'xla');
    this.node.textContent = `XLA compiled ${compiled.length} of ${rows.length} programs.`;
  }
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'my-extension:count',
  autoStart: true,
  requires: [IPerspexPanel],
  activate: (_, panel: IPerspexPanel) => {
    panel.addTab(() => new CountTab());
  }
};

export default plugin;
