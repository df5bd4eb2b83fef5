/**
 * How the views look: type, lines, buttons and tables in the colours of the page that they are in.
 *
 * Colours are JupyterLab's variables; the fallbacks are greys that show on black and on white, so
 * that a view is readable in VS Code, in Colab and in an exported page, too.
 */

/**
 * Styles that all views share; each view adds its own. Every view brings a copy, so a rule that
 * changes something of these names one class more than they do: a later copy would undo it.
 */
export const LOOK = `
.pspx-view {
  --pspx-text: var(--jp-ui-font-color1, inherit);
  --pspx-muted: var(--jp-ui-font-color2, color-mix(in srgb, currentColor 72%, transparent));
  --pspx-line: var(--jp-border-color2, rgba(128, 128, 128, 0.35));
  --pspx-accent: var(--jp-brand-color1, #1976d2);
  --pspx-bad: var(--jp-error-color1, #d32f2f);
  --pspx-good: var(--jp-success-color1, #388e3c);
  --pspx-raised: var(--jp-layout-color2, rgba(128, 128, 128, 0.12));
  color: var(--pspx-text);
  font: var(--jp-ui-font-size1, 13px) / 1.45 var(--jp-ui-font-family, system-ui, sans-serif);
  box-sizing: border-box;
}
.pspx-view *, .pspx-view *::before { box-sizing: border-box; }
.pspx-code {
  font-family: var(--jp-code-font-family, ui-monospace, monospace);
  font-size: var(--jp-code-font-size, 13px);
}
.pspx-muted { color: var(--pspx-muted); }
.pspx-error { color: var(--pspx-bad); }
.pspx-view bdi { unicode-bidi: isolate; }
.pspx-button {
  font: inherit;
  color: inherit;
  background: var(--pspx-raised);
  border: 1px solid var(--pspx-line);
  border-radius: 3px;
  padding: 1px 8px;
  min-height: 24px;
  cursor: pointer;
}
.pspx-button:hover:not(:disabled) { border-color: var(--pspx-accent); }
.pspx-button:disabled { opacity: 0.5; cursor: default; }
.pspx-quiet {
  font: inherit;
  color: inherit;
  background: none;
  border: none;
  padding: 0;
  text-align: inherit;
  cursor: pointer;
}
.pspx-quiet:hover { text-decoration: underline; }
.pspx-field {
  font: inherit;
  color: inherit;
  background: var(--jp-layout-color1, transparent);
  border: 1px solid var(--pspx-line);
  border-radius: 3px;
  padding: 1px 6px;
  min-height: 24px;
}
select.pspx-field option { color: var(--jp-ui-font-color1, initial); background: var(--jp-layout-color1, initial); }
.pspx-view :focus-visible { outline: 2px solid var(--pspx-accent); outline-offset: 1px; }
.pspx-table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0; width: auto; }
.pspx-table caption { text-align: left; color: var(--pspx-muted); caption-side: top; padding: 0 0 2px; }
.pspx-table th, .pspx-table td {
  border: none;
  padding: 2px 10px 2px 0;
  text-align: right;
  vertical-align: baseline;
  background: none;
}
.pspx-table td:not(.pspx-left) { white-space: nowrap; }
.pspx-table th { font-weight: normal; color: var(--pspx-muted); border-bottom: 1px solid var(--pspx-line); }
.pspx-table th[scope="row"] { color: inherit; border-bottom: none; }
.pspx-table .pspx-left { text-align: left; }
.pspx-row { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: baseline; }
.pspx-hidden {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
@media (prefers-reduced-motion: reduce) {
  .pspx-view * { transition: none !important; animation: none !important; }
}
@media (forced-colors: active) {
  .pspx-view { --pspx-text: CanvasText; --pspx-muted: CanvasText; --pspx-line: CanvasText; --pspx-accent: Highlight; }
  .pspx-button, .pspx-field { border-color: ButtonText; }
  .pspx-quiet { text-decoration: underline; }
  .pspx-button:disabled { opacity: 1; color: GrayText; border-color: GrayText; }
  .pspx-button[aria-pressed="true"] { forced-color-adjust: none; color: HighlightText; background: Highlight; }
  .pspx-table th, .pspx-table td { border-color: CanvasText; }
}
`;
