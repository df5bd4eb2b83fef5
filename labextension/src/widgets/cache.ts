/** The table of compiled programs as a widget. */

import type { ProgramRow } from '../contract';
import { cacheView } from '../views/cache/view';
import { follow, type Given, keepKeys, kernelOf } from './host';

function render({ model, el: host }: Given): () => void {
  const release = keepKeys(host);
  const ask = (what: string) => (id: string) => kernel.ask({ do: what, id });
  const view = cacheView(host, {
    evict: ask('evict'),
    pin: ask('pin'),
    unpin: ask('unpin'),
    clear: () => kernel.ask({ do: 'clear' })
  });
  view.enable(false);
  const kernel = kernelOf(model, isThere => view.enable(isThere));
  const stop = follow(model, ['data'], () =>
    view.update((model.get('data') as { rows: ProgramRow[] }).rows)
  );
  return () => {
    release();
    stop();
    kernel.dispose();
    view.dispose();
  };
}

export default { render };
