/** How long a function takes: the stages of compiling it, and its calls as a distribution. */

import type { Timings } from '../contract';
import { el, replace, said, stylesheet } from './dom';
import { HISTOGRAM_STYLE, histogramFigure } from './histogram';
import { LOOK } from './look';
import { trans } from './trans';
import { count, duration } from './units';

const STYLE = `
.pspx-timings { display: flex; flex-direction: column; gap: 8px; padding: 2px 0 4px; }
.pspx-timings-name { overflow-wrap: anywhere; }
.pspx-timings-columns { display: flex; flex-wrap: wrap; gap: 10px 36px; align-items: flex-start; }
.pspx-timings-scroll { overflow-x: auto; max-width: 100%; }
.pspx-timings .pspx-histogram { width: 420px; }
.pspx-timings tr.pspx-timings-total > * { font-weight: 600; }
`;

export type TimingsView = { update(data: Timings): void; dispose(): void };

export function timingsView(host: HTMLElement): TimingsView {
  const content = el('div', { class: 'pspx-timings' });
  const root = el(
    'div',
    { class: 'pspx-view', role: 'group', 'aria-label': trans.__('Timings') },
    stylesheet(LOOK + HISTOGRAM_STYLE + STYLE),
    content
  );
  host.append(root);
  return {
    update: data => replace(content, drawn(data)),
    dispose: () => root.remove()
  };
}

function drawn(data: Timings): HTMLElement[] {
  const { min, median, max } = data.quantiles.total ?? {};
  return [
    el(
      'div',
      { class: 'pspx-code pspx-timings-name' },
      said(data.name, 80),
      said(`(${data.signature})`, 200)
    ),
    el('div', { class: 'pspx-timings-columns' }, stagesTable(data), callsTable(data)),
    histogramFigure(
      data.histogram,
      trans.__(
        'Histogram of the total time of %1 runs: from %2 to %3, median %4',
        count(data.runs),
        duration(min),
        duration(max),
        duration(median)
      ),
      duration
    ),
    el(
      'div',
      { class: 'pspx-muted' },
      data.sentence,
      data.outside > 0 &&
        ` ${trans._n('%2 run took longer than the histogram shows.', '%2 runs took longer than the histogram shows.', data.outside, count(data.outside))}`,
      data.queued !== null &&
        ` ${trans.__('Dispatched back to back without waiting, a call takes %1.', duration(data.queued))}`
    )
  ];
}

function stagesTable(data: Timings): HTMLElement {
  return el(
    'table',
    { class: 'pspx-table' },
    el('caption', null, trans.__('Compiling, once')),
    el(
      'tbody',
      null,
      data.stages.map(stage =>
        el(
          'tr',
          null,
          el('th', { scope: 'row', class: 'pspx-left' }, stage.name),
          el('td', null, duration(stage.seconds)),
          el('td', { class: 'pspx-left pspx-muted' }, stage.note)
        )
      )
    )
  );
}

function callsTable({ quantiles, runs }: Timings): HTMLElement {
  const levels = Object.keys(quantiles.total ?? {});
  const meaning = {
    call: trans.__('Time until Python has the results'),
    wait: trans.__('Time from then until the values are ready'),
    total: trans.__('Both together')
  };
  return el(
    'div',
    { class: 'pspx-timings-scroll' },
    el(
      'table',
      { class: 'pspx-table' },
      el('caption', null, trans._n('%2 run', '%2 runs', runs, count(runs))),
      el(
        'thead',
        null,
        el(
          'tr',
          null,
          el('td'),
          levels.map(level => el('th', { scope: 'col' }, level))
        )
      ),
      el(
        'tbody',
        null,
        (['call', 'wait', 'total'] as const).map(part =>
          el(
            'tr',
            { class: part === 'total' ? 'pspx-timings-total' : null },
            el('th', { scope: 'row', class: 'pspx-left', title: meaning[part] }, part),
            levels.map(level => el('td', null, duration(quantiles[part]?.[level])))
          )
        )
      )
    )
  );
}
