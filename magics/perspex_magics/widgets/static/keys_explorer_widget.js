/** The key explorer as a widget: its view, fed by the model, and the view's questions sent to it. */

import { follow, keepKeys, kernelOf } from "./follow.js";
import { keysExplorerView } from "./keys_explorer.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const release = keepKeys(host);
  const view = keysExplorerView(host, { ask: (message) => kernel.ask(message) });
  view.enable(false);
  const kernel = kernelOf(model, (isThere) => view.enable(isThere));
  const stop = follow(model, ["data", "detail"], () =>
    view.update({ tree: model.get("data"), detail: model.get("detail") }),
  );
  return () => {
    release();
    stop();
    kernel.dispose();
    view.dispose();
  };
}

export default { render };
