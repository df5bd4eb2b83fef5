/** Between a widget's model and its view. */

import { trans } from '../views/trans';

/** The part of anywidget's model that the widgets use. */
export interface Model {
  get(name: string): unknown;
  on(event: string, listener: (said: unknown) => void): unknown;
  off(event: string, listener: (said: unknown) => void): unknown;
  send(message: Record<string, unknown>): void;
}

/** What anywidget gives to `render`. */
export type Given = { model: Model; el: HTMLElement };

/**
 * Call `update` now, and once after each time that some of the model's values have changed. The
 * returned function stops it.
 */
export function follow(model: Model, names: readonly string[], update: () => void): () => void {
  let isWaiting = false;
  let isStopped = false;
  const changed = () => {
    if (isWaiting) {
      return;
    }
    isWaiting = true;
    queueMicrotask(() => {
      isWaiting = false;
      if (!isStopped) {
        update();
      }
    });
  };
  names.forEach(name => model.on(`change:${name}`, changed));
  update();
  return () => {
    isStopped = true;
    names.forEach(name => model.off(`change:${name}`, changed));
  };
}

/**
 * Keep plain keys that are pressed in a view from being shortcuts of JupyterLab, which would answer
 * Enter and the arrows itself. Keys with Control, Alt or Command stay what they are. The returned
 * function stops it.
 */
export function keepKeys(host: HTMLElement): () => void {
  const mark = (event: KeyboardEvent) => {
    const target = event.target;
    if (target instanceof Element && host.contains(target)) {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      // On the very element that has the focus: JupyterLab looks there first.
      target.toggleAttribute('data-lm-suppress-shortcuts', isPlain);
    }
  };
  // JupyterLab listens at the document, which comes after the window.
  window.addEventListener('keydown', mark, true);
  return () => window.removeEventListener('keydown', mark, true);
}

/** How long a kernel has to answer, in ms; it answers between cells, and a cell may take long. */
const PATIENCE = 10_000;

/** What the kernel says to a question. */
type Answer = { request: string; ok: boolean; text: string };

export type WidgetKernel = {
  /** What the kernel says; rejected with the reason if it refuses, or does not answer. */
  ask(message: Record<string, unknown>): Promise<string>;
  dispose(): void;
};

/**
 * The kernel behind a widget, which may be busy, gone, or never have been there, as in an exported
 * page. `changed` is called when that is found out.
 */
export function kernelOf(model: Model, changed: (isThere: boolean) => void): WidgetKernel {
  // Every view of a model hears all answers.
  const mark = Math.random().toString(36).slice(2);
  let requests = 0;
  let isThere = false;
  const waiting = new Map<string, { settle(answer: Answer): void; timer: number }>();
  const found = (now: boolean) => {
    if (now !== isThere) {
      isThere = now;
      changed(isThere);
    }
  };
  const settle = (answer: Answer) => {
    const asked = waiting.get(answer.request);
    waiting.delete(answer.request);
    window.clearTimeout(asked?.timer);
    asked?.settle(answer);
  };
  const heard = (said: unknown) => {
    if (isAnswer(said) && said.request.startsWith(mark)) {
      found(true);
      settle(said);
    }
  };
  const ask = (message: Record<string, unknown>) =>
    new Promise<string>((resolve, reject) => {
      requests += 1;
      const request = `${mark}-${requests}`;
      const isGone = () => {
        found(false);
        settle({ request, ok: false, text: trans.__('The kernel is not responding.') });
      };
      waiting.set(request, {
        settle: ({ ok, text }) => (ok ? resolve(text) : reject(new Error(text))),
        timer: window.setTimeout(isGone, PATIENCE)
      });
      try {
        model.send({ ...message, request });
      } catch {
        isGone(); // Its comm is closed.
      }
    });
  model.on('msg:custom', heard);
  // Without an answer the view offers nothing, which says enough.
  ask({ do: 'greet' }).catch(() => undefined);
  return {
    ask,
    dispose() {
      model.off('msg:custom', heard);
      waiting.forEach(({ timer }) => window.clearTimeout(timer));
      waiting.clear();
    }
  };
}

function isAnswer(said: unknown): said is Answer {
  return (
    typeof said === 'object' &&
    said !== null &&
    'request' in said &&
    typeof said.request === 'string'
  );
}
