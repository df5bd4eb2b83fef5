/** The table of compiled programs as a widget. */

import { cacheView } from "./cache.js";
import { follow, keepKeys } from "./follow.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const release = keepKeys(host);
  const view = cacheView(host, {});
  const stop = follow(model, ["data"], () => view.update(model.get("data").rows));
  return () => {
    release();
    stop();
    view.dispose();
  };
}

export default { render };
