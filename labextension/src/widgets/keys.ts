/** The key explorer as a widget. */

import type { KeyDetail, KeyTree } from '../contract';
import { keysView } from '../views/keys/view';
import { follow, type Given, keepKeys, kernelOf } from './host';

function render({ model, el: host }: Given): () => void {
  const release = keepKeys(host);
  const view = keysView(host, { ask: question => kernel.ask(question) });
  view.enable(false);
  const kernel = kernelOf(model, isThere => view.enable(isThere));
  const stop = follow(model, ['data', 'detail'], () =>
    view.update(model.get('data') as KeyTree, model.get('detail') as KeyDetail)
  );
  return () => {
    release();
    stop();
    kernel.dispose();
    view.dispose();
  };
}

export default { render };
