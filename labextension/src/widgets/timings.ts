/** Timings as a widget. */

import type { Timings } from '../contract';
import { timingsView } from '../views/timings';
import { follow, type Given } from './host';

function render({ model, el: host }: Given): () => void {
  const view = timingsView(host);
  const stop = follow(model, ['data'], () => view.update(model.get('data') as Timings));
  return () => {
    stop();
    view.dispose();
  };
}

export default { render };
