/** Brings a line of the user's code into sight. */

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Place } from '../contract';

/** How long a revealed line stays marked, in ms. */
const MARKED = 1200;

/** Go to the line; returns whether its cell is in the notebook. */
export async function reveal(panel: NotebookPanel | null, place: Place): Promise<boolean> {
  const notebook = panel?.content;
  const index = notebook?.widgets.findIndex(one => one.model.id === place.cell) ?? -1;
  const cell = notebook?.widgets[index];
  if (!notebook || !cell) {
    return false;
  }
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  await notebook.scrollToCell(cell, 'smart');
  await cell.ready;
  const editor = cell.editor;
  if (editor && place.line >= 1 && place.line <= editor.lineCount) {
    const position = { line: place.line - 1, column: 0 };
    editor.setCursorPosition(position);
    editor.revealPosition(position);
  }
  cell.node.classList.add('pspx-shown');
  window.setTimeout(() => cell.node.classList.remove('pspx-shown'), MARKED);
  return true;
}
