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
    if (target instanceof Element && host.contains(target)) {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      // On the very element that has the focus: JupyterLab looks there first.
      target.toggleAttribute("data-lm-suppress-shortcuts", isPlain);
    }
  };
  // JupyterLab listens at the document, which comes after the window.
  window.addEventListener("keydown", mark, true);
  return () => window.removeEventListener("keydown", mark, true);
}

/** How long a kernel has to answer, in ms; it answers between cells, and a cell may take long. */
const KERNEL_PATIENCE = 10_000;
const KERNEL_SILENT = "The kernel does not answer: it is busy, or gone.";

/**
 * The kernel behind a widget, which may be busy, gone, or never have been there, as in a page that
 * was exported.
 *
 * @param {{on: Function, off: Function, send: Function}} model
 * @param {(isThere: boolean) => void} changed is called when that is found out.
 * @returns {{ask: (message: Record<string, unknown>) => Promise<string>, dispose: () => void}} What
 *   comes back is what the kernel has to say; it is rejected with what could not be done.
 */
export function kernelOf(model, changed) {
  // Every view of a model hears all answers.
  const mark = Math.random().toString(36).slice(2);
  let count = 0;
  let isThere = false;
  /** @type {Map<string, {resolve: (text: string) => void, reject: (error: Error) => void, timer: number}>} */
  const waiting = new Map();
  const found = (/** @type {boolean} */ now) => {
    if (now !== isThere) {
      isThere = now;
      changed(isThere);
    }
  };
  const heard = (/** @type {any} */ answer) => {
    const request = answer?.request;
    if (typeof request !== "string" || !request.startsWith(mark)) {
      return;
    }
    found(true);
    const asked = waiting.get(request);
    if (asked) {
      waiting.delete(request);
      window.clearTimeout(asked.timer);
      if (answer.ok) {
        asked.resolve(answer.text);
      } else {
        asked.reject(new Error(answer.text));
      }
    }
  };
  /** @type {(message: Record<string, unknown>) => Promise<string>} */
  const ask = (message) =>
    new Promise((resolve, reject) => {
      count += 1;
      const request = `${mark}-${count}`;
      const timer = window.setTimeout(() => {
        waiting.delete(request);
        found(false);
        reject(new Error(KERNEL_SILENT));
      }, KERNEL_PATIENCE);
      waiting.set(request, { resolve, reject, timer });
      try {
        model.send({ ...message, request });
      } catch {
        // Its comm is closed, so there will be no answer.
        waiting.delete(request);
        window.clearTimeout(timer);
        found(false);
        reject(new Error(KERNEL_SILENT));
      }
    });
  model.on("msg:custom", heard);
  // Without an answer there is nothing that could be done, and that is what the view shows anyway.
  ask({ do: "greet" }).catch(() => {});
  return {
    ask,
    dispose() {
      model.off("msg:custom", heard);
      waiting.forEach(({ timer }) => window.clearTimeout(timer));
    },
  };
}
