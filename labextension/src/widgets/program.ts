/** A program as a widget: the view that the panel shows, too. */

import { el } from '../views/dom';
import { layOut } from '../views/layout';
import type { Document } from '../views/program/rows';
import { programView } from '../views/program/view';
import { follow, type Given, keepKeys } from './host';

function render({ model, el: host }: Given): () => void {
  const release = keepKeys(host);
  // The view fills its frame; below a cell nothing else says how high that is.
  const frame = el('div', { style: 'height: min(460px, 75vh)' });
  host.append(frame);
  const view = programView(frame, { layOut });
  const stop = follow(model, ['data', 'previous'], () =>
    view.update(model.get('data') as Document, model.get('previous') as Document | null)
  );
  return () => {
    release();
    stop();
    view.dispose();
    frame.remove();
  };
}

export default { render };
