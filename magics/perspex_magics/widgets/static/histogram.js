/** A histogram: bars for what was counted, a line for what was to be expected. */

import { el, svg } from "./dom.js";

const HISTOGRAM_WIDTH = 420;
const HISTOGRAM_HEIGHT = 120;

/** Styles of histograms. */
export const HISTOGRAM_STYLE = `
.pspx-histogram { margin: 0; max-width: 420px; }
.pspx-histogram svg { display: block; width: 100%; height: auto; }
.pspx-histogram-bars { fill: var(--pspx-accent); opacity: 0.75; }
.pspx-histogram-line { fill: none; stroke: var(--pspx-text, currentColor); stroke-width: 1.2; }
.pspx-histogram-axis { stroke: var(--pspx-line); }
.pspx-histogram-ends { display: flex; justify-content: space-between; font-size: 12px; color: var(--pspx-muted); }
@media (forced-colors: active) {
  .pspx-histogram-bars { fill: Highlight; opacity: 1; }
  .pspx-histogram-line, .pspx-histogram-axis { stroke: CanvasText; }
  .pspx-histogram-line { stroke-width: 2; }
}
`;

/**
 * @param {{edges: number[], counts: number[], expected?: number[]}} data
 * @param {string} label what it shows, for those who do not see it.
 * @param {(edge: number) => string} written how the ends of the axis are written.
 * @returns {HTMLElement}
 */
export function histogramFigure({ edges, counts, expected = [] }, label, written) {
  const [low, high] = [edges[0], edges[edges.length - 1]];
  const top = Math.max(1e-9, ...counts, ...expected);
  const x = (/** @type {number} */ edge) =>
    high === low ? 0 : (HISTOGRAM_WIDTH * (edge - low)) / (high - low);
  const y = (/** @type {number} */ n) => HISTOGRAM_HEIGHT - (HISTOGRAM_HEIGHT - 2) * (n / top);
  const bars = counts.map((n, i) =>
    svg(
      "rect",
      {
        x: x(edges[i]),
        y: y(n),
        width: Math.max(0.5, x(edges[i + 1]) - x(edges[i]) - 0.75),
        height: HISTOGRAM_HEIGHT - y(n),
      },
      svg("title", null, `${n} from ${written(edges[i])} to ${written(edges[i + 1])}`),
    ),
  );
  const line = expected.map((n, i) => `H${x(edges[i])}V${y(n)}H${x(edges[i + 1])}`).join("");
  return el(
    "figure",
    { class: "pspx-histogram" },
    svg(
      "svg",
      { viewBox: `0 0 ${HISTOGRAM_WIDTH} ${HISTOGRAM_HEIGHT}`, role: "img", "aria-label": label },
      svg("g", { class: "pspx-histogram-bars" }, bars),
      expected.length > 0 &&
        svg("path", { class: "pspx-histogram-line", d: `M0 ${y(expected[0])}${line}` }),
      svg("path", { class: "pspx-histogram-axis", d: `M0 ${HISTOGRAM_HEIGHT}H${HISTOGRAM_WIDTH}` }),
    ),
    el(
      "figcaption",
      { class: "pspx-histogram-ends" },
      el("span", null, written(low)),
      el("span", null, written(high)),
    ),
  );
}
