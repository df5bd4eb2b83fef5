/** How the view of a program looks, besides what all views share. */
export const PROGRAM_STYLE = `
.pspx-program { display: flex; flex-direction: column; gap: 4px; height: 100%; min-height: max-content; min-width: 0; }
.pspx-program [hidden] { display: none !important; }
.pspx-program-bar { padding: 4px 6px 0; }
.pspx-program-title { font-weight: 600; flex: 1 1 12em; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.pspx-program-title .pspx-muted { font-weight: normal; }
.pspx-program-switch[aria-pressed="true"], .pspx-program-bar [aria-pressed="true"] { border-color: var(--pspx-accent); box-shadow: inset 0 -2px 0 var(--pspx-accent); }
.pspx-program-stage { display: flex; flex: 1 0 150px; min-height: 150px; border-block: 1px solid var(--pspx-line); }
.pspx-program-pane, .pspx-program-graph { display: flex; flex-direction: column; flex: 1 1 0; min-width: 0; }
.pspx-program-pane + .pspx-program-pane, .pspx-program-graph { border-inline-start: 1px solid var(--pspx-line); }
.pspx-program .pspx-program-top { padding: 1px 8px; border-bottom: 1px solid var(--pspx-line); flex-wrap: nowrap; white-space: nowrap; overflow: hidden; }
.pspx-program-top > :first-child { flex: 1 1 auto; overflow: hidden; text-overflow: ellipsis; }
.pspx-program-box { flex: 1 1 0; overflow: auto; contain: strict; outline-offset: -2px !important; font-size: 12px; }
.pspx-program-space { position: relative; min-width: 100%; width: max-content; }
.pspx-program-lines { min-width: 100%; width: max-content; will-change: transform; }
.pspx-program-line { height: 19px; line-height: 19px; white-space: pre; padding-inline-end: 12px; cursor: default; }
.pspx-program-text { user-select: text; }
.pspx-program-number { display: inline-block; width: 3.6em; padding-inline-end: 0.6em; text-align: end; color: var(--pspx-muted); user-select: none; }
.pspx-program-fold, .pspx-program-nofold { display: inline-block; width: 1.3em; color: var(--pspx-muted); user-select: none; text-align: center; }
.pspx-program-fold { cursor: pointer; }
.pspx-program-fold:hover { color: var(--pspx-accent); }
.pspx-program-line.pspx-program-head { color: var(--pspx-muted); }
.pspx-program-current { box-shadow: inset 2px 0 0 var(--pspx-line); }
.pspx-program-box:focus-visible .pspx-program-current { box-shadow: inset 2px 0 0 var(--pspx-accent); background: var(--pspx-raised); }
.pspx-program-line.pspx-program-lit { background: color-mix(in srgb, var(--pspx-accent) 10%, transparent); }
.pspx-program-line.pspx-program-pinned { background: color-mix(in srgb, var(--pspx-accent) 18%, transparent); box-shadow: inset 3px 0 0 var(--pspx-accent); }
.pspx-program-new { background: color-mix(in srgb, var(--pspx-good) 16%, transparent); }
.pspx-program-gone { background: color-mix(in srgb, var(--pspx-bad) 14%, transparent); }
.pspx-program-type { color: var(--jp-mirror-editor-variable-3-color, var(--pspx-muted)); }
.pspx-program-string { color: var(--jp-mirror-editor-string-color, inherit); }
.pspx-program-word { color: var(--jp-mirror-editor-keyword-color, inherit); font-weight: 600; }
.pspx-program-pinned .pspx-program-text *, .pspx-program-lit .pspx-program-text * { color: inherit; }
.pspx-program mark.pspx-program-mark { background: var(--jp-warn-color2, #ffd54f); color: #000 !important; border-radius: 2px; }
.pspx-program-details { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0 8px; min-height: 1.5em; }
.pspx-program-notes { padding: 0 8px 4px; font-size: 90%; }
.pspx-program-path { padding: 1px 8px; border-bottom: 1px solid var(--pspx-line); }
.pspx-program-canvas { flex: 1 1 0; overflow: auto; contain: strict; padding: 8px; outline-offset: -2px !important; }
.pspx-program-edge { fill: none; stroke: var(--pspx-muted); stroke-width: 1; opacity: 0.7; }
.pspx-program-node { cursor: pointer; }
.pspx-program-node rect { fill: var(--jp-layout-color1, Canvas); stroke: var(--pspx-line); }
.pspx-program-node text { fill: var(--jp-ui-font-color1, currentColor); font: 600 12px var(--jp-code-font-family, ui-monospace, monospace); }
.pspx-program-node text.pspx-program-small { font: 10px var(--jp-code-font-family, ui-monospace, monospace); fill: var(--pspx-muted); }
.pspx-program-node.pspx-program-lit rect { stroke: var(--pspx-accent); }
.pspx-program-node.pspx-program-pinned rect { stroke: var(--pspx-accent); stroke-width: 2; fill: color-mix(in srgb, var(--pspx-accent) 18%, var(--jp-layout-color1, Canvas)); }
@media (forced-colors: active) {
  .pspx-program-line.pspx-program-lit { outline: 1px dashed Highlight; outline-offset: -1px; }
  .pspx-program-line.pspx-program-pinned { outline: 2px solid Highlight; outline-offset: -2px; }
  .pspx-program .pspx-program-node rect { fill: Canvas; stroke: CanvasText; }
  .pspx-program .pspx-program-node text { fill: CanvasText; }
  .pspx-program .pspx-program-edge { stroke: CanvasText; opacity: 1; }
  .pspx-program .pspx-program-node.pspx-program-lit rect { stroke: Highlight; stroke-dasharray: 4 2; stroke-width: 2; }
  .pspx-program .pspx-program-node.pspx-program-pinned rect { fill: Canvas; stroke: Highlight; stroke-dasharray: none; stroke-width: 4; }
}
`;
