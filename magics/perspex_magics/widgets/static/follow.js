/** Between a widget's model and its view. */

/**
 * Call `update` now, and once after each time that some of the model's values have changed.
 *
 * @param {{on: Function, off: Function}} model
 * @param {string[]} names of the values.
 * @param {() => void} update
 * @returns {() => void} stops it.
 */
export function follow(model, names, update) {
  let waiting = false;
  let stopped = false;
  const changed = () => {
    if (waiting) {
      return;
    }
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      if (!stopped) {
        update();
      }
    });
  };
  for (const name of names) {
    model.on(`change:${name}`, changed);
  }
  update();
  return () => {
    stopped = true;
    for (const name of names) {
      model.off(`change:${name}`, changed);
    }
  };
}

/**
 * Keep plain keys that are pressed in a view from being shortcuts of JupyterLab, which would answer
 * Enter and the arrows itself. Those with Control, Alt or Command stay what they are.
 *
 * @param {HTMLElement} host
 * @returns {() => void} stops it.
 */
export function keepKeys(host) {
  /** @param {KeyboardEvent} event */
  const mark = (event) => {
    const target = event.target;
    if (target instanceof HTMLElement && host.contains(target)) {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      // On the very element that has the focus: JupyterLab looks there first.
      target.toggleAttribute("data-lm-suppress-shortcuts", isPlain);
    }
  };
  // JupyterLab listens at the document, which comes after the window.
  window.addEventListener("keydown", mark, true);
  return () => window.removeEventListener("keydown", mark, true);
}
