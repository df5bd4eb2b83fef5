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
 * Keep keys that are pressed in a view from being shortcuts of JupyterLab, which would answer Enter
 * and the arrows itself.
 *
 * @param {HTMLElement} host
 */
export function keepKeys(host) {
  host.dataset.lmSuppressShortcuts = "true";
}
