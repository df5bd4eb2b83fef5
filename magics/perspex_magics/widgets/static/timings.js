/** How long a function takes: the stages of making it once, and its calls as a distribution. */

import { duration, el, replace, said, stylesheet } from "./dom.js";
import { HISTOGRAM_STYLE, histogramFigure } from "./histogram.js";
import { LOOK } from "./look.js";

/**
 * @typedef {{name: string, signature: string, sentence: string, runs: number, outside: number,
 *   stages: {name: string, seconds: number, note: string}[],
 *   quantiles: Record<string, Record<string, number>>, queued: number | null,
 *   histogram: {edges: number[], counts: number[]}}} TimingsData
 */

const TIMINGS_STYLE = `
.pspx-timings { display: flex; flex-direction: column; gap: 8px; padding: 2px 0 4px; }
.pspx-timings-name { overflow-wrap: anywhere; }
.pspx-timings-columns { display: flex; flex-wrap: wrap; gap: 10px 36px; align-items: flex-start; }
.pspx-timings-scroll { overflow-x: auto; max-width: 100%; }
.pspx-timings .pspx-histogram { width: 420px; }
.pspx-timings tr.pspx-timings-total > * { font-weight: 600; }
`;

/** @type {Record<string, string>} */
const TIMINGS_MEANING = {
  call: "until Python has the results in hand",
  wait: "from then on, until the numbers are there",
  total: "both",
};

/**
 * @param {HTMLElement} host
 * @returns {{update: (data: TimingsData) => void, dispose: () => void}}
 */
export function timingsView(host) {
  const content = el("div", { class: "pspx-timings" });
  const root = el(
    "div",
    { class: "pspx-view", role: "group", "aria-label": "Timings" },
    stylesheet(LOOK + HISTOGRAM_STYLE + TIMINGS_STYLE),
    content,
  );
  host.append(root);
  return {
    update(data) {
      replace(
        content,
        el("div", { class: "pspx-code pspx-timings-name" }, said(data.name, 80), said(`(${data.signature})`, 200)),
        el("div", { class: "pspx-timings-columns" }, stagesTable(data), callsTable(data)),
        histogramFigure(
          data.histogram,
          `Histogram of ${data.runs} runs, in total from ${duration(data.quantiles.total.min)} to ` +
            `${duration(data.quantiles.total.max)}, median ${duration(data.quantiles.total.median)}`,
          duration,
        ),
        el(
          "div",
          { class: "pspx-muted" },
          data.sentence,
          data.outside ? ` ${data.outside} of them took longer than the picture shows.` : "",
          data.queued === null ? "" : ` Handed over one after the other without waiting, a call takes ${duration(data.queued)}.`,
        ),
      );
    },
    dispose() {
      root.remove();
    },
  };
}

/** @param {TimingsData} data */
function stagesTable(data) {
  return el(
    "table",
    { class: "pspx-table" },
    el("caption", null, "Making the program, once"),
    el(
      "tbody",
      null,
      data.stages.map((stage) =>
        el(
          "tr",
          null,
          el("th", { scope: "row", class: "pspx-left" }, stage.name),
          el("td", null, duration(stage.seconds)),
          el("td", { class: "pspx-left pspx-muted" }, stage.note),
        ),
      ),
    ),
  );
}

/** @param {TimingsData} data */
function callsTable(data) {
  const levels = Object.keys(data.quantiles.total);
  return el(
    "div",
    { class: "pspx-timings-scroll" },
    el(
      "table",
      { class: "pspx-table" },
      el("caption", null, `${data.runs} runs`),
      el(
        "thead",
        null,
        el("tr", null, el("td"), levels.map((level) => el("th", { scope: "col" }, level))),
      ),
      el(
        "tbody",
        null,
        Object.entries(data.quantiles).map(([part, of]) =>
          el(
            "tr",
            { class: part === "total" ? "pspx-timings-total" : null },
            el("th", { scope: "row", class: "pspx-left", title: TIMINGS_MEANING[part] }, part),
            levels.map((level) => el("td", null, duration(of[level]))),
          ),
        ),
      ),
    ),
  );
}
