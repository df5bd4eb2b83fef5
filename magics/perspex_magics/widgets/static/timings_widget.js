/** Timings as a widget. */

import { follow } from "./follow.js";
import { timingsView } from "./timings.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const view = timingsView(host);
  const stop = follow(model, ["data"], () => view.update(model.get("data")));
  return () => {
    stop();
    view.dispose();
  };
}

export default { render };
