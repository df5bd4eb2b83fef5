/** How the table of programs looks, besides what all views share. */
export const CACHE_STYLE = `
.pspx-cache { display: flex; flex-direction: column; gap: 6px; min-width: 0; }
.pspx-cache-scroll { overflow: auto; max-width: 100%; }
.pspx-cache .pspx-table { width: 100%; }
.pspx-cache th .pspx-quiet { white-space: nowrap; }
.pspx-cache-name {
  display: inline-block;
  max-width: 20em;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  vertical-align: bottom;
}
.pspx-cache-narrow .pspx-cache-name { max-width: 7.5em; }
.pspx-cache-mark { color: var(--pspx-bad); }
.pspx-cache-row:hover > * { background: var(--pspx-raised); }
.pspx-cache .pspx-table .pspx-cache-story > td { padding: 2px 0 10px 12px; text-align: left; white-space: normal; }
.pspx-cache-story dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 12px; margin: 0 0 6px; }
.pspx-cache-story dt { color: var(--pspx-muted); font-weight: normal; }
.pspx-cache-story dd { margin: 0; overflow-wrap: anywhere; }
.pspx-cache .pspx-cache-fold > th { width: 100%; max-width: 0; }
.pspx-cache .pspx-cache-lines { display: block; max-width: 100%; overflow: hidden; text-overflow: ellipsis; }
.pspx-cache .pspx-inside > th:first-child { padding-left: 16px; }
`;
