/** The keyboard's focus in a table that is drawn again. */

/**
 * Remember which button of the table has the focus. The returned function gives it back: to the same
 * button, to the name of its row if the button is gone, to the next row's name if the row is gone, and
 * else to `rest`.
 */
export function keepFocus(body: HTMLElement, rest: HTMLElement): () => void {
  const page = body.ownerDocument;
  const focused = page.activeElement;
  if (!(focused instanceof HTMLElement) || !body.contains(focused)) {
    return () => undefined;
  }
  const { pspxRow = '', pspxAct = '' } = focused.dataset;
  const names = () => [...body.querySelectorAll<HTMLElement>('[data-pspx-act="open"]')];
  const at = names().findIndex(name => name.dataset.pspxRow === pspxRow);
  const of = (act: string) =>
    body.querySelector<HTMLElement>(
      `[data-pspx-row="${CSS.escape(pspxRow)}"][data-pspx-act="${CSS.escape(act)}"]:not(:disabled)`
    );
  return () => {
    if (page.activeElement === focused) {
      return;
    }
    const left = names();
    const next = focused.isConnected
      ? focused
      : (of(pspxAct) ?? of('open') ?? left[Math.min(at, left.length - 1)] ?? rest);
    next.focus({ preventScroll: true });
  };
}
