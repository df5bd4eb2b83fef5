/** A histogram: bars for what was counted, a line for what was expected. */

import type { Histogram } from '../contract';
import { el, svg } from './dom';
import { trans } from './trans';
import { count } from './units';

const WIDTH = 420;
const HEIGHT = 120;

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
 * A picture of a histogram. `label` says what it shows to those who do not see it; `written` writes
 * the ends of the axis.
 */
export function histogramFigure(
  { edges, counts, expected = [] }: Histogram,
  label: string,
  written: (edge: number) => string
): HTMLElement {
  const [low, high] = [edges.at(0) ?? 0, edges.at(-1) ?? 0];
  const top = Math.max(1e-9, ...counts, ...expected);
  const x = (i: number) => (high === low ? 0 : (WIDTH * ((edges[i] ?? low) - low)) / (high - low));
  const y = (n: number) => HEIGHT - (HEIGHT - 2) * (n / top);
  const bars = counts.map((n, i) =>
    svg(
      'rect',
      { x: x(i), y: y(n), width: Math.max(0.5, x(i + 1) - x(i) - 0.75), height: HEIGHT - y(n) },
      svg(
        'title',
        null,
        trans.__(
          '%1 from %2 to %3',
          count(n),
          written(edges[i] ?? low),
          written(edges[i + 1] ?? high)
        )
      )
    )
  );
  const line = expected.map((n, i) => `H${x(i)}V${y(n)}H${x(i + 1)}`).join('');
  return el(
    'figure',
    { class: 'pspx-histogram' },
    svg(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label },
      svg('g', { class: 'pspx-histogram-bars' }, bars),
      expected.length > 0 &&
        svg('path', { class: 'pspx-histogram-line', d: `M0 ${y(expected[0] ?? 0)}${line}` }),
      svg('path', { class: 'pspx-histogram-axis', d: `M0 ${HEIGHT}H${WIDTH}` })
    ),
    el(
      'figcaption',
      { class: 'pspx-histogram-ends' },
      el('span', null, written(low)),
      el('span', null, written(high))
    )
  );
}
