/**
 * The compiled programs of a session as a table: where each was found, what it took, and why the
 * programs that were there before would not do.
 */

import { coded, cut, duration, el, replace, said, size, stylesheet } from "./dom.js";
import { LOOK } from "./look.js";

/**
 * @typedef {{text: string, cell: string, file: string, line: number}} CachePlace
 * @typedef {{cause: string, advice: string, seconds: number, compiles: number, here: number}} CacheMiss
 * @typedef {{
 *   id: string, order: number, name: string, signature: string, at: CachePlace | null,
 *   found: "xla" | "memory" | "disk", trace: number | null, lower: number | null, compile: number,
 *   byXla: number, size: number | null, equations: number | null, pinned: boolean,
 *   miss: CacheMiss | null, calls: number | null, device: number | null, canShow: boolean
 * }} CacheRow A `ProgramRow` of the panel's schema.
 * @typedef {(id: string) => (void | Promise<string>)} CacheAction Done to the program with that id;
 *   what comes back is said in the status line.
 * @typedef {{
 *   evict?: CacheAction, pin?: CacheAction, unpin?: CacheAction, clear?: () => (void | Promise<string>),
 *   show?: (id: string) => void, reveal?: (place: CachePlace) => void
 * }} CacheActions
 * @typedef {{
 *   title: string, left?: boolean, wide?: boolean, key: (row: CacheRow) => number | string,
 *   text: (row: CacheRow) => (Node | string), hint: string
 * }} CacheColumn `wide` ones are left out where there is little room.
 */

/** How many rows are drawn before somebody asks for more. */
const CACHE_PAGE = 200;

/** Below this width, in pixels, only the columns that are not `wide` are shown. */
const CACHE_NARROW = 560;

const CACHE_NO_KERNEL = "Nothing can be done without the kernel, which has not answered.";

const CACHE_FOUND = {
  xla: { text: "compiled", hint: "XLA compiled it" },
  memory: { text: "memory", hint: "found in this process: it had compiled the same program" },
  disk: { text: "disk", hint: "loaded from the cache on disk" },
};

const CACHE_STYLE = `
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
`;

/** @type {CacheColumn[]} */
const CACHE_COLUMNS = [
  {
    title: "function",
    left: true,
    key: (row) => row.name.toLowerCase(),
    text: (row) => said(row.name, 60),
    hint: "the function that was compiled",
  },
  {
    title: "types",
    left: true,
    wide: true,
    key: (row) => row.signature,
    text: (row) => el("span", { class: "pspx-muted" }, said(row.signature, 40)),
    hint: "the types of its arguments",
  },
  {
    title: "from",
    left: true,
    key: (row) => row.found,
    text: (row) => el("span", { title: CACHE_FOUND[row.found].hint }, CACHE_FOUND[row.found].text),
    hint: "where the executable came from",
  },
  {
    title: "trace",
    wide: true,
    key: (row) => row.trace ?? -1,
    text: (row) => duration(row.trace),
    hint: "running the Python function to write the program down",
  },
  {
    title: "lower",
    wide: true,
    key: (row) => row.lower ?? -1,
    text: (row) => duration(row.lower),
    hint: "the program as StableHLO",
  },
  {
    title: "compile",
    wide: true,
    key: (row) => row.compile,
    text: (row) => duration(row.compile),
    hint: "until the executable was there, wherever it came from",
  },
  {
    title: "total",
    key: (row) => cacheTotal(row),
    text: (row) => duration(cacheTotal(row)),
    hint: "trace, lower and compile together",
  },
  {
    title: "XLA took",
    wide: true,
    key: (row) => row.byXla,
    text: (row) => duration(row.byXla),
    hint: "how long XLA took for it, now or once",
  },
  {
    title: "size",
    key: (row) => row.size ?? -1,
    text: (row) => size(row.size),
    hint: "on disk",
  },
];

/** @param {CacheRow} row */
function cacheTotal(row) {
  return (row.trace ?? 0) + (row.lower ?? 0) + row.compile;
}

/**
 * A table of programs.
 *
 * @param {HTMLElement} host where it is drawn.
 * @param {CacheActions} [actions] a button without an action is not drawn.
 * @returns {{update: (rows: CacheRow[]) => void, forget: () => void,
 *   enable: (isEnabled: boolean) => void, dispose: () => void}} `update` takes all rows each time, in
 *   any order; a row that did not change is the same object as before. `forget` says that the next
 *   ones are of another session, whose ids begin anew. `enable` says whether anything can be done
 *   just now.
 */
export function cacheView(host, actions = {}) {
  /** @type {CacheRow[]} */
  let rows = [];
  let sortedBy = -1;
  let descending = true;
  let shown = CACHE_PAGE;
  let narrow = false;
  let wanted = "";
  let isEnabled = true;
  /** @type {Set<string>} */
  const open = new Set();
  /** @type {Map<string, {row: CacheRow, line: HTMLElement}>} */
  let drawn = new Map();

  const search = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      class: "pspx-field",
      placeholder: "filter by name or type",
      "aria-label": "Filter the programs by name or type",
      oninput: () => {
        wanted = search.value.trim().toLowerCase();
        shown = CACHE_PAGE;
        draw();
      },
    })
  );
  const summary = el("span", { class: "pspx-muted" });
  const clearing = el("span", { class: "pspx-row" });
  const status = el("div", { role: "status", class: "pspx-muted" });
  const head = el("tr");
  const body = el("tbody");
  const more = el("div");
  const root = el(
    "div",
    { class: "pspx-view pspx-cache", role: "group", "aria-label": "Compiled programs" },
    stylesheet(LOOK + CACHE_STYLE),
    el("div", { class: "pspx-row" }, search, summary, clearing),
    el(
      "div",
      // Focusable, so that the keyboard can scroll it.
      { class: "pspx-cache-scroll", tabindex: 0, role: "group", "aria-label": "Table of programs" },
      el(
        "table",
        { class: "pspx-table" },
        el("caption", { class: "pspx-hidden" }, "Compiled programs, the newest first"),
        el("thead", null, head),
        body,
      ),
    ),
    more,
    status,
  );
  host.append(root);

  const observer = new ResizeObserver(() => {
    const isNarrow = root.clientWidth < CACHE_NARROW;
    if (isNarrow !== narrow) {
      narrow = isNarrow;
      root.classList.toggle("pspx-cache-narrow", narrow);
      drawn = new Map();
      draw();
    }
  });
  observer.observe(root);
  offerClear();

  const columns = () => CACHE_COLUMNS.filter((column) => !(narrow && column.wide));

  function drawHead() {
    const focused = root.ownerDocument.activeElement?.getAttribute("data-pspx-column");
    replace(
      head,
      columns().map((column) => {
        const index = CACHE_COLUMNS.indexOf(column);
        const direction = descending ? "descending" : "ascending";
        const sort = index === sortedBy ? direction : "none";
        const arrow = { none: "", ascending: " ▴", descending: " ▾" }[sort];
        return el(
          "th",
          { scope: "col", class: column.left ? "pspx-left" : null, "aria-sort": sort },
          el(
            "button",
            {
              class: "pspx-quiet",
              title: column.hint,
              "data-pspx-column": column.title,
              onclick: () => {
                descending = index === sortedBy ? !descending : !column.left;
                sortedBy = index;
                draw();
              },
            },
            column.title + arrow,
          ),
        );
      }),
    );
    if (focused) {
      /** @type {HTMLElement | null} */ (
        head.querySelector(`[data-pspx-column="${CSS.escape(focused)}"]`)
      )?.focus();
    }
  }

  function chosen() {
    const found = wanted
      ? rows.filter((row) => `${row.name}\n${row.signature}`.toLowerCase().includes(wanted))
      : [...rows];
    const key = sortedBy < 0 ? null : CACHE_COLUMNS[sortedBy].key;
    const sign = descending ? -1 : 1;
    return found.sort((a, b) => {
      if (key) {
        const [x, y] = [key(a), key(b)];
        if (x !== y) {
          return x < y ? -sign : sign;
        }
      }
      return b.order - a.order;
    });
  }

  function draw() {
    const focus = cacheFocus(body, search);
    drawHead();
    const found = chosen();
    /** @type {Map<string, {row: CacheRow, line: HTMLElement}>} */
    const now = new Map();
    /** @type {HTMLElement[]} */
    const lines = [];
    for (const row of found.slice(0, shown)) {
      const before = drawn.get(row.id);
      const kept = before && before.row === row ? before.line : lineOf(row);
      now.set(row.id, { row, line: kept });
      lines.push(kept);
      if (open.has(row.id)) {
        lines.push(storyOf(row));
      }
    }
    drawn = now;
    body.replaceChildren(...lines);
    focus.restore();
    if (!found.length) {
      const text = rows.length ? "No program fits the filter." : "Nothing has been compiled yet.";
      body.append(el("tr", null, el("td", { class: "pspx-left pspx-muted", colspan: 99 }, text)));
    }
    replace(
      more,
      found.length > shown &&
        el(
          "button",
          {
            class: "pspx-button",
            onclick: () => {
              shown += 5 * CACHE_PAGE;
              draw();
            },
          },
          `Show more of ${found.length}`,
        ),
    );
    drawSummary();
  }

  function drawSummary() {
    const counts = { xla: 0, memory: 0, disk: 0 };
    let seconds = 0;
    for (const row of rows) {
      counts[row.found] += 1;
      seconds += cacheTotal(row);
    }
    const parts = Object.entries(counts)
      .filter(([, n]) => n)
      .map(([found, n]) => `${n} ${CACHE_FOUND[/** @type {keyof typeof counts} */ (found)].text}`);
    const text = rows.length === 1 ? "1 program" : `${rows.length} programs`;
    replace(summary, [text, ...parts, rows.length ? `${duration(seconds)} in all` : ""].filter(Boolean).join(" · "));
  }

  /** @param {CacheRow} row */
  function lineOf(row) {
    const cells = columns().map((column, i) => {
      if (i) {
        return el("td", { class: column.left ? "pspx-left" : null }, column.text(row));
      }
      const button = el(
        "button",
        {
          class: "pspx-quiet pspx-code pspx-cache-name",
          "aria-expanded": String(open.has(row.id)),
          "data-pspx-row": row.id,
          "data-pspx-act": "open",
          onclick: () => {
            if (!open.delete(row.id)) {
              open.add(row.id);
            }
            button.setAttribute("aria-expanded", String(open.has(row.id)));
            draw();
          },
        },
        column.text(row),
      );
      return el(
        "th",
        { scope: "row", class: "pspx-left" },
        button,
        row.pinned && el("span", { class: "pspx-muted" }, " pinned"),
        row.miss &&
          el(
            "span",
            { class: "pspx-cache-mark", title: cut(row.miss.cause, 400) },
            " compiled again",
          ),
      );
    });
    return el("tr", { class: "pspx-cache-row" }, cells);
  }

  /** @param {CacheRow} row */
  function storyOf(row) {
    /** @type {(Node | null)[]} */
    const facts = [];
    /** @type {(name: string, ...value: (Node | string)[]) => void} */
    const fact = (name, ...value) => {
      facts.push(el("dt", null, name), el("dd", null, ...value));
    };
    fact("types", said(`(${row.signature})`, 400));
    if (row.at) {
      const at = row.at;
      const place = said(at.text);
      fact("called at", actions.reveal ? cacheButton("pspx-quiet", () => actions.reveal?.(at), place) : place);
    }
    fact(
      "took",
      `trace ${duration(row.trace)}, lower ${duration(row.lower)}, compile ${duration(row.compile)}` +
        (row.found === "xla" ? "" : `, where XLA took ${duration(row.byXla)}`),
    );
    if (row.equations !== null) {
      fact("equations", String(row.equations));
    }
    if (row.calls !== null) {
      const device = row.device === null ? "" : `, ${duration(row.device)} on the device`;
      fact("calls", `${row.calls}${device}`);
    }
    if (row.miss) {
      fact("why again", coded(row.miss.cause, 400));
      if (row.miss.advice) {
        fact("instead", coded(row.miss.advice, 400));
      }
      fact(
        "cost",
        `${duration(row.miss.seconds)}; ${row.miss.compiles} programs of it so far, ` +
          `${row.miss.here} from this line`,
      );
    }
    const { show, evict } = actions;
    const pin = row.pinned ? actions.unpin : actions.pin;
    /** @type {(act: string, text: string, onclick: () => void) => HTMLElement} */
    const button = (act, text, onclick) => {
      const made = cacheButton("pspx-button", onclick, text);
      made.toggleAttribute("disabled", !isEnabled);
      made.dataset.pspxRow = row.id;
      made.dataset.pspxAct = act;
      return made;
    };
    const buttons = [
      show && row.canShow && button("show", "Show program", () => show(row.id)),
      pin && button("pin", row.pinned ? "Unpin" : "Pin", () => tell(pin(row.id))),
      evict && button("evict", "Evict", () => tell(evict(row.id))),
    ];
    return el(
      "tr",
      { class: "pspx-cache-story" },
      el(
        "td",
        { colspan: columns().length },
        el("dl", null, facts),
        buttons.some(Boolean) &&
          el("div", { class: "pspx-row" }, buttons, !isEnabled && el("span", { class: "pspx-muted" }, CACHE_NO_KERNEL)),
      ),
    );
  }

  function offerClear() {
    const { clear } = actions;
    if (!clear) {
      return;
    }
    const ask = cacheButton(
      "pspx-button",
      () => {
        const keep = cacheButton("pspx-button", back, "Keep");
        replace(
          clearing,
          "Forget all programs? They compile again when they are called.",
          cacheButton(
            "pspx-button",
            () => {
              back();
              tell(clear());
            },
            "Forget",
          ),
          keep,
        );
        keep.focus();
      },
      "Clear…",
    );
    const back = () => {
      replace(clearing, ask);
      ask.focus();
    };
    ask.toggleAttribute("disabled", !isEnabled);
    if (!isEnabled) {
      ask.title = CACHE_NO_KERNEL;
    }
    replace(clearing, ask);
  }

  /** @param {void | Promise<string>} done */
  function tell(done) {
    done?.then(
      (text) => replace(status, said(text, 400)),
      (error) => replace(status, said(String(error?.message ?? error), 400)),
    );
  }

  draw();
  return {
    update(next) {
      rows = next;
      draw();
    },
    forget() {
      open.clear();
      drawn.clear();
      shown = CACHE_PAGE;
      replace(status);
    },
    enable(now) {
      if (now !== isEnabled) {
        isEnabled = now;
        offerClear();
        draw();
      }
    },
    dispose() {
      observer.disconnect();
      root.remove();
    },
  };
}

/**
 * @param {string} look
 * @param {() => void} onclick
 * @param {...(Node | string)} content
 */
function cacheButton(look, onclick, ...content) {
  return el("button", { class: look, type: "button", onclick }, ...content);
}

/**
 * Which button of the table has the focus, for when the table is drawn again: the same one, or the
 * row's name where it is gone, that of the next row where the row is gone, and else `rest`.
 *
 * @param {HTMLElement} body
 * @param {HTMLElement} rest
 */
function cacheFocus(body, rest) {
  const page = body.ownerDocument;
  const focused = page.activeElement;
  if (!(focused instanceof HTMLElement) || !body.contains(focused)) {
    return { restore() {} };
  }
  const { pspxRow = "", pspxAct = "" } = focused.dataset;
  const names = () => /** @type {HTMLElement[]} */ ([...body.querySelectorAll('[data-pspx-act="open"]')]);
  const at = names().findIndex((name) => name.dataset.pspxRow === pspxRow);
  const of = (/** @type {string} */ act) =>
    /** @type {HTMLElement | null} */ (
      body.querySelector(`[data-pspx-row="${CSS.escape(pspxRow)}"][data-pspx-act="${CSS.escape(act)}"]:not(:disabled)`)
    );
  return {
    restore() {
      if (page.activeElement === focused) {
        return;
      }
      const left = names();
      const next = focused.isConnected
        ? focused
        : (of(pspxAct) ?? of("open") ?? left[Math.min(at, left.length - 1)] ?? rest);
      next.focus({ preventScroll: true });
    },
  };
}
