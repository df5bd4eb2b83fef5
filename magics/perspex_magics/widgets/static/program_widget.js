/** A program as a widget: the view that the panel shows, too. */

import { el } from "./dom.js";
import { follow, keepKeys } from "./follow.js";
import { programView } from "./program.js";
import { programLayout } from "./program_layout.js";

/** @param {{model: any, el: HTMLElement}} widget */
function render({ model, el: host }) {
  const release = keepKeys(host);
  // The view fills its frame; below a cell nothing else says how high that is.
  const frame = el("div", { style: "height: min(460px, 75vh)" });
  host.append(frame);
  const view = programView(frame, { layout: programLayout });
  const stop = follow(model, ["data", "previous"], () =>
    view.update(model.get("data"), { previous: model.get("previous") }),
  );
  return () => {
    release();
    stop();
    view.dispose();
    frame.remove();
  };
}

export default { render };
