/** The key explorer as a widget: its view, fed by the model, and the view's questions sent to it. */

import { follow, keepKeys } from "./follow.js";
import { keysExplorerView } from "./keys_explorer.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const release = keepKeys(host);
  const view = keysExplorerView(host, { ask: (message) => model.send(message) });
  const stop = follow(model, ["data", "detail", "said"], () =>
    view.update({ tree: model.get("data"), detail: model.get("detail"), said: model.get("said") }),
  );
  return () => {
    release();
    stop();
    view.dispose();
  };
}

export default { render };
