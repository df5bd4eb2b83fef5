/** How the key explorer looks, besides what all views share. */
export const KEYS_STYLE = `
.pspx-keys { container-type: inline-size; padding: 2px 0 4px; }
.pspx-keys-columns { display: grid; grid-template-columns: minmax(0, 1fr); gap: 8px 20px; }
@container (min-width: 720px) {
  .pspx-keys-columns { grid-template-columns: minmax(220px, 2fr) minmax(0, 3fr); }
}
.pspx-keys-tree { max-height: 560px; overflow: auto; padding: 2px; }
.pspx-keys-node {
  display: flex;
  gap: 10px;
  align-items: baseline;
  padding: 1px 6px;
  border-radius: 3px;
  cursor: pointer;
  white-space: nowrap;
}
.pspx-keys-node:hover { background: var(--pspx-raised); }
.pspx-keys-node[aria-selected="true"] { box-shadow: inset 3px 0 0 var(--pspx-accent); background: var(--pspx-raised); }
.pspx-keys-node .pspx-keys-words { margin-left: auto; padding-left: 16px; }
.pspx-keys-alike {
  border: 1px solid currentColor;
  border-radius: 3px;
  padding: 0 4px;
  font-size: 11px;
  line-height: 1.3;
  color: var(--pspx-muted);
}
.pspx-keys-lit .pspx-keys-alike { color: var(--jp-ui-inverse-font-color1, #fff); background: var(--pspx-accent); border-color: var(--pspx-accent); }
.pspx-keys-lit .pspx-keys-words { color: var(--pspx-text); font-weight: 600; }
.pspx-keys-head { display: flex; gap: 10px; align-items: baseline; margin-bottom: 6px; }
.pspx-keys-head code { overflow-wrap: anywhere; background: none; color: inherit; }
.pspx-keys-forms { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 6px 0 10px; }
.pspx-keys-forms form { display: inline-flex; gap: 4px; align-items: baseline; margin: 0; }
.pspx-keys-forms input { width: 6em; }
.pspx-keys-preview { flex-basis: 100%; }
.pspx-keys-detail { min-width: 0; }
.pspx-keys-detail p { margin: 0 0 6px; }
.pspx-keys-facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 12px; margin: 0 0 8px; }
.pspx-keys-facts dt { color: var(--pspx-muted); font-weight: normal; }
.pspx-keys-facts dd { margin: 0; overflow-wrap: anywhere; }
.pspx-keys-rounds { overflow: auto; max-height: 560px; }
.pspx-keys .pspx-keys-rounds td, .pspx-keys .pspx-keys-rounds th { padding-top: 0; padding-bottom: 0; white-space: nowrap; }
.pspx-keys-rounds svg { vertical-align: middle; }
.pspx-keys-injected > * { color: var(--pspx-accent); }
.pspx-keys-lines { overflow: auto; white-space: pre; }
.pspx-keys summary { cursor: pointer; }
@media (forced-colors: active) {
  .pspx-keys-node[aria-selected="true"] { outline: 2px solid Highlight; outline-offset: -2px; }
  .pspx-keys-lit .pspx-keys-alike { forced-color-adjust: none; color: HighlightText; background: Highlight; border-color: Highlight; }
}
`;
