/** The table of compiled programs as a widget. */

import { cacheView } from "./cache.js";
import { follow, keepKeys, kernelOf } from "./follow.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const release = keepKeys(host);
  const ask = (/** @type {string} */ what) => (/** @type {string} */ id) => kernel.ask({ do: what, id });
  const view = cacheView(host, {
    evict: ask("evict"),
    pin: ask("pin"),
    unpin: ask("unpin"),
    clear: () => kernel.ask({ do: "clear" }),
  });
  view.enable(false);
  const kernel = kernelOf(model, (isThere) => view.enable(isThere));
  const stop = follow(model, ["data"], () => view.update(model.get("data").rows));
  return () => {
    release();
    stop();
    kernel.dispose();
    view.dispose();
  };
}

export default { render };
