/**
 * What becomes of a random key: a tree that is built by clicks, and beside it one of its nodes in
 * full: its bits, the hash that made them round by round, samples, and where the notebook used it.
 *
 * All numbers come from Python; here they are only shown.
 */

import { bitStrip } from "./bits.js";
import { append, el, replace, said, stylesheet } from "./dom.js";
import { HISTOGRAM_STYLE, histogramFigure } from "./histogram.js";
import { LOOK } from "./look.js";

/**
 * @typedef {{id: number, parent: number | null, depth: number, kind: string, label: string,
 *   words: string[], alike: string, used: string[]}} KeyNode
 * @typedef {{indent: string, text: string, place: string, remark: string, is_bad: boolean}} KeyLine
 * @typedef {{partitionable: boolean, nodes: KeyNode[], selected: number, distributions: string[],
 *   note: string, notebook: KeyLine[]}} KeyTreeData
 * @typedef {{key: string[], counter: number[], taken: string,
 *   steps: {what: string, words: string[]}[]}} KeyBlock
 * @typedef {{distribution: string, shape: number[], size: number, dtype: string, index: number,
 *   values: string[], block: KeyBlock | null, bits: string | null, value: string,
 *   histogram?: {edges: number[], counts: number[], expected: number[], outside: number},
 *   facts?: Record<string, number>}} KeyDrawn
 * @typedef {{id: number, kind: string, code: string, numbers: number[], origin: string,
 *   blocks: KeyBlock[], drawn?: KeyDrawn, preview?: KeyDrawn}} KeyDetail
 * @typedef {{tree: KeyTreeData, detail: KeyDetail}} KeysExplorerData
 */

const KEYS_NO_KERNEL = "Nothing can be done without the kernel, which has not answered.";

const KEYS_STYLE = `
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

/**
 * @param {HTMLElement} host
 * @param {{ask: (message: Record<string, unknown>) => Promise<string>}} actions `ask` sends what was
 *   clicked, `{do: "split" | "fold_in" | "draw" | "remove" | "look", node, ...}`, and is rejected
 *   with what cannot be done.
 * @returns {{update: (data: KeysExplorerData) => void, enable: (isEnabled: boolean) => void,
 *   dispose: () => void}} `enable` says whether there is anybody to ask.
 */
export function keysExplorerView(host, actions) {
  /** @type {KeysExplorerData | null} */
  let data = null;
  // What was typed stays, whichever node is selected.
  const typed = { count: "2", number: "0", distribution: "normal", shape: "1000" };
  const openDetails = new Map([["rounds", true]]);
  let isEnabled = true;

  const tree = el("div", { class: "pspx-keys-tree", role: "tree", "aria-label": "Keys" });
  const detail = el("div", { class: "pspx-keys-detail", role: "group", "aria-label": "Selected node" });
  const note = el("div", { class: "pspx-muted" });
  const notebook = el("div");
  const status = el("div", { role: "status", class: "pspx-error" });
  const root = el(
    "div",
    { class: "pspx-view pspx-keys", role: "group", "aria-label": "Random keys" },
    stylesheet(LOOK + HISTOGRAM_STYLE + KEYS_STYLE),
    el("div", { class: "pspx-keys-columns" }, el("div", null, tree, note, notebook), detail),
    status,
  );
  host.append(root);
  tree.addEventListener("keydown", pressed);

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (!data) {
      return;
    }
    const nodes = data.tree.nodes;
    const at = nodes.findIndex((node) => node.id === data?.tree.selected);
    const here = nodes[at];
    /** @type {Record<string, () => (KeyNode | undefined)>} */
    const moves = {
      ArrowDown: () => nodes[at + 1],
      ArrowUp: () => nodes[at - 1],
      Home: () => nodes[0],
      End: () => nodes[nodes.length - 1],
      ArrowLeft: () => nodes.find((node) => node.id === here.parent),
      ArrowRight: () => nodes.find((node) => node.parent === here.id),
    };
    if (event.key in moves) {
      event.preventDefault();
      const next = moves[event.key]();
      if (next) {
        look(next.id);
      }
    } else if (event.key === "Delete" && here.kind !== "root") {
      event.preventDefault();
      ask({ do: "remove", node: here.id });
    }
    // The notebook has shortcuts of its own.
    event.stopPropagation();
  }

  /** @param {Record<string, unknown>} message */
  function ask(message) {
    if (isEnabled) {
      const preview = openDetails.get("preview") === true ? { preview: typed.distribution } : {};
      actions.ask({ ...preview, ...message }).then(
        () => replace(status),
        (error) => replace(status, said(String(error?.message ?? error), 400)),
      );
    } else {
      replace(status, KEYS_NO_KERNEL);
    }
  }

  /** @param {number} id */
  function look(id) {
    ask({ do: "look", node: id });
  }

  /** @param {KeyTreeData} told */
  function drawTree(told) {
    const hadFocus = tree.contains(root.ownerDocument.activeElement);
    const selected = told.nodes.find((node) => node.id === told.selected);
    replace(
      tree,
      told.nodes.map((node) => {
        const isSelected = node.id === told.selected;
        const isLit = selected !== undefined && node.alike !== "" && node.alike === selected.alike;
        return el(
          "div",
          {
            class: isLit ? "pspx-keys-node pspx-keys-lit" : "pspx-keys-node",
            role: "treeitem",
            "aria-level": node.depth + 1,
            "aria-selected": String(isSelected),
            tabindex: isSelected ? 0 : -1,
            style: `padding-inline-start: ${8 + 16 * node.depth}px`,
            onclick: () => look(node.id),
          },
          el("span", null, said(node.label, 60)),
          node.alike &&
            el(
              "span",
              { class: "pspx-keys-alike", title: "All nodes with this letter have the same bits" },
              el("span", { class: "pspx-hidden" }, "same bits: "),
              node.alike,
            ),
          node.used.length > 0 && el("span", { class: "pspx-error" }, "used twice"),
          node.kind !== "draw" &&
            el("span", { class: "pspx-code pspx-muted pspx-keys-words" }, node.words.join(" ")),
        );
      }),
    );
    const current = /** @type {HTMLElement | null} */ (tree.querySelector('[aria-selected="true"]'));
    if (hadFocus) {
      current?.focus({ preventScroll: true });
    }
    if (current && (current.offsetTop < tree.scrollTop || current.offsetTop > tree.scrollTop + tree.clientHeight - 24)) {
      tree.scrollTop = current.offsetTop - tree.clientHeight / 2;
    }
  }

  /**
   * @param {KeyTreeData} told
   * @param {KeyDetail} node
   */
  function drawDetail(told, node) {
    const focused = root.ownerDocument.activeElement?.getAttribute("data-pspx-field");
    const row = told.nodes.find((other) => other.id === node.id);
    const copied = el("span", { class: "pspx-muted" });
    replace(
      detail,
      el(
        "div",
        { class: "pspx-keys-head" },
        el("code", { class: "pspx-code" }, said(node.code, 600)),
        el(
          "button",
          {
            class: "pspx-button",
            type: "button",
            "data-pspx-field": "copy",
            onclick: () => copyCode(node.code, copied),
          },
          "Copy",
        ),
        copied,
        node.kind !== "root" &&
          el(
            "button",
            {
              class: "pspx-button",
              type: "button",
              "data-pspx-field": "remove",
              "data-pspx-asks": true,
              disabled: !isEnabled,
              onclick: () => ask({ do: "remove", node: node.id }),
            },
            "Remove",
          ),
      ),
    );
    if (node.drawn) {
      append(detail, samplesOf(node, node.drawn));
    } else {
      append(detail, formsOf(told, node), row ? warningsOf(told, row) : null, factsOf(node));
      for (const block of node.blocks) {
        append(detail, roundsOf(block));
      }
    }
    if (focused) {
      /** @type {HTMLElement | null} */ (
        detail.querySelector(`[data-pspx-field="${CSS.escape(focused)}"]`)
      )?.focus();
    }
  }

  /**
   * @param {KeyTreeData} told
   * @param {KeyDetail} node
   */
  function formsOf(told, node) {
    /** @type {(name: "count" | "number" | "shape", label: string, mode: string) => HTMLElement} */
    const field = (name, label, mode) => {
      const input = /** @type {HTMLInputElement} */ (
        el("input", {
          class: "pspx-field",
          value: typed[name],
          inputmode: mode,
          "aria-label": label,
          "data-pspx-field": name,
          oninput: () => {
            typed[name] = input.value;
          },
        })
      );
      return input;
    };
    /** @type {(verb: string, name: string, message: () => Record<string, unknown>, ...fields: HTMLElement[]) => HTMLElement} */
    const form = (verb, name, message, ...fields) =>
      el(
        "form",
        {
          onsubmit: (event) => {
            event.preventDefault();
            ask({ node: node.id, ...message() });
          },
          // JupyterLab takes the submission by Enter away from forms in outputs.
          onkeydown: (event) => {
            if (event.key === "Enter" && event.target instanceof HTMLInputElement) {
              event.preventDefault();
              event.target.form?.requestSubmit();
            }
          },
        },
        el(
          "button",
          { class: "pspx-button", "data-pspx-field": name, "data-pspx-asks": true, disabled: !isEnabled },
          verb,
        ),
        ...fields,
      );
    const chooser = /** @type {HTMLSelectElement} */ (
      el(
        "select",
        {
          class: "pspx-field",
          "aria-label": "Distribution",
          "data-pspx-field": "distribution",
          onchange: () => {
            typed.distribution = chooser.value;
            preview();
          },
        },
        told.distributions.map((name) => el("option", { value: name, selected: name === typed.distribution }, name)),
      )
    );
    const preview = () => {
      if (openDetails.get("preview") === true && node.preview?.distribution !== typed.distribution) {
        look(node.id);
      }
    };
    return el(
      "div",
      { class: "pspx-keys-forms" },
      form(
        "Split",
        "split",
        () => ({ do: "split", count: wholeOrNull(typed.count) }),
        field("count", "Into how many keys", "numeric"),
      ),
      form(
        "Fold in",
        "fold in",
        () => ({ do: "fold_in", number: wholeOrNull(typed.number) }),
        field("number", "Number to fold in", "numeric"),
      ),
      form(
        "Draw",
        "draw",
        () => ({ do: "draw", distribution: typed.distribution, shape: typed.shape }),
        chooser,
        field("shape", "Shape of the samples", "text"),
      ),
      previewOf(node, preview),
    );
  }

  /**
   * @param {KeyDetail} node
   * @param {() => void} wanted is called where the histogram is to be seen.
   */
  function previewOf(node, wanted) {
    const { preview } = node;
    const fold = el(
      "details",
      {
        class: "pspx-keys-preview",
        open: openDetails.get("preview") === true,
        ontoggle: () => {
          openDetails.set("preview", fold.hasAttribute("open"));
          wanted();
        },
      },
      el(
        "summary",
        { title: "What a draw would look like; it adds no node and is no use of the key", "data-pspx-field": "preview" },
        `Preview of ${preview?.distribution ?? typed.distribution}`,
      ),
      preview && histogramOf(preview),
    );
    return fold;
  }

  /** @param {KeyDrawn} drawn */
  function histogramOf({ histogram, facts, size, dtype, shape }) {
    if (!histogram || !facts) {
      return [];
    }
    const told = Object.entries(facts).map(([name, value]) => `${name} ${fourDigits(value)}`);
    return [
      el("p", { class: "pspx-muted" }, [`${dtype}[${shape.join(", ")}]`, ...told].join(" · ")),
      histogramFigure(
        histogram,
        `Histogram of ${size} samples: ${told.join(", ")}; the line is what the distribution expects`,
        fourDigits,
      ),
      el(
        "p",
        { class: "pspx-muted" },
        "Bars: these samples. Line: expected of the distribution.",
        histogram.outside ? ` ${histogram.outside} samples lie farther out.` : "",
      ),
    ];
  }

  /**
   * @param {KeyTreeData} told
   * @param {KeyNode} row
   */
  function warningsOf(told, row) {
    const parts = [];
    if (row.used.length) {
      parts.push(
        el(
          "p",
          { class: "pspx-error" },
          `Used ${row.used.length} times (${row.used.join(", ")}): what comes of it is not independent. `,
          "Split it first, and use each key once.",
        ),
      );
    }
    const others = told.nodes.filter((other) => other.id !== row.id && other.alike && other.alike === row.alike);
    if (others.length) {
      parts.push(
        el(
          "p",
          null,
          "The same bits as ",
          others.flatMap((other, i) => [
            i ? ", " : "",
            el(
              "button",
              { class: "pspx-quiet", type: "button", onclick: () => look(other.id) },
              el("u", null, said(other.label, 60)),
            ),
          ]),
          ".",
        ),
      );
    }
    return parts;
  }

  /** @param {KeyDetail} node */
  function factsOf(node) {
    const words = node.numbers.map(hexWord);
    return el(
      "dl",
      { class: "pspx-keys-facts" },
      el("dt", null, "numbers"),
      el("dd", { class: "pspx-code" }, node.numbers.join(" ")),
      el("dt", null, "bits"),
      el("dd", { class: "pspx-code" }, `${words.join(" ")} `, bitStrip(words)),
      el("dt", null, "made by"),
      el(
        "dd",
        null,
        node.blocks.length
          ? ["hashing the counter ", el("span", { class: "pspx-code" }, node.blocks.map((block) => keyCounter(block)).join(" and ")), " under ", el("code", { class: "pspx-code" }, said(node.origin, 200))]
          : "no hash here: the tree begins with it",
      ),
    );
  }

  /** @param {KeyBlock} block */
  function roundsOf(block) {
    /** @type {Record<string, string>} */
    const takes = {
      both: "both words are the key",
      first: "its first word is taken",
      second: "its second word is taken",
      xor: "the exclusive or of its words is taken",
    };
    const body = block.steps.map((step) =>
      el(
        "tr",
        { class: step.what.startsWith("+") ? "pspx-keys-injected" : null },
        el("th", { scope: "row", class: "pspx-left" }, step.what),
        el("td", { class: "pspx-code" }, step.words[0]),
        el("td", { class: "pspx-code" }, step.words[1]),
        el("td", { class: "pspx-left" }, bitStrip(step.words)),
      ),
    );
    const fold = el(
      "details",
      { open: openDetails.get("rounds") === true, ontoggle: () => openDetails.set("rounds", fold.hasAttribute("open")) },
      el("summary", null, `Threefry-2x32 of ${keyCounter(block)}: 20 rounds; ${takes[block.taken]}`),
      el(
        "div",
        { class: "pspx-keys-rounds", tabindex: 0, role: "group", "aria-label": "Rounds of the hash" },
        el(
          "table",
          { class: "pspx-table" },
          el("caption", null, `under the key ${block.key.join(" ")}, which is added where marked +`),
          el(
            "thead",
            null,
            el("tr", null, ["after", "first", "second", "bits"].map((title, i) => el("th", { scope: "col", class: i % 3 ? null : "pspx-left" }, title))),
          ),
          el("tbody", null, body),
        ),
      ),
    );
    return fold;
  }

  /**
   * @param {KeyDetail} node
   * @param {KeyDrawn} drawn
   */
  function samplesOf(node, drawn) {
    const parts = [];
    if (!drawn.size) {
      return [el("p", { class: "pspx-muted" }, `${drawn.dtype}[${drawn.shape.join(", ")}]: no elements`)];
    }
    parts.push(
      ...histogramOf(drawn),
      el("p", { class: "pspx-code" }, drawn.values.join("  ") + (drawn.size > drawn.values.length ? "  …" : "")),
    );
    if (!drawn.block) {
      parts.push(
        el("p", { class: "pspx-muted" }, "An element depends on more than one hash here, so no rounds are shown."),
      );
      return parts;
    }
    const index = /** @type {HTMLInputElement} */ (
      el("input", {
        class: "pspx-field",
        type: "number",
        min: 0,
        max: drawn.size - 1,
        value: drawn.index,
        "aria-label": "Element, in row-major order",
        "data-pspx-field": "index",
        onchange: () => ask({ do: "look", node: node.id, index: wholeOrNull(index.value) }),
      })
    );
    parts.push(
      el(
        "p",
        { class: "pspx-row" },
        "Element ",
        index,
        el("span", { class: "pspx-code" }, `= ${drawn.value}`),
        ` from the bits `,
        el("span", { class: "pspx-code" }, drawn.bits),
      ),
      roundsOf(drawn.block),
    );
    return parts;
  }

  /** @param {KeyTreeData} told */
  function drawNotebook(told) {
    replace(note, said(told.note, 200));
    if (!told.notebook.length) {
      replace(notebook);
      return;
    }
    const fold = el(
      "details",
      { open: openDetails.get("notebook") !== false, ontoggle: () => openDetails.set("notebook", fold.hasAttribute("open")) },
      el("summary", null, "In the notebook"),
      el(
        "div",
        { class: "pspx-keys-lines pspx-code", tabindex: 0, role: "group", "aria-label": "Lines of the notebook" },
        told.notebook.map((line) =>
          el(
            "div",
            { class: line.is_bad ? "pspx-error" : null },
            line.indent,
            said(line.text, 100),
            line.place && el("span", { class: line.is_bad ? null : "pspx-muted" }, "  ", said(line.place, 100)),
            line.remark && el("span", { class: line.is_bad ? null : "pspx-muted" }, "  ", said(line.remark, 100)),
            line.is_bad && "  more than one use",
          ),
        ),
      ),
    );
    replace(notebook, fold);
  }

  return {
    update(next) {
      const before = data;
      data = next;
      if (before?.tree !== next.tree) {
        drawTree(next.tree);
        drawNotebook(next.tree);
      }
      if (before?.detail !== next.detail || before?.tree !== next.tree) {
        drawDetail(next.tree, next.detail);
      }
    },
    enable(now) {
      isEnabled = now;
      root.querySelectorAll("[data-pspx-asks]").forEach((button) => button.toggleAttribute("disabled", !now));
      replace(status, now ? "" : KEYS_NO_KERNEL);
    },
    dispose() {
      root.remove();
    },
  };
}

/** @param {string} text */
function wholeOrNull(text) {
  return /^\s*\d+\s*$/.test(text) ? Number(text) : null;
}

/** @param {number} word */
function hexWord(word) {
  return word.toString(16).padStart(8, "0");
}

/** @param {KeyBlock} block */
function keyCounter(block) {
  return `(${block.counter.join(", ")})`;
}

/** @param {number} value */
function fourDigits(value) {
  return String(Number(value.toPrecision(4)));
}

/**
 * @param {string} text
 * @param {Element} status
 */
async function copyCode(text, status) {
  try {
    await navigator.clipboard.writeText(text);
    replace(status, "copied");
  } catch {
    // No page is allowed to that was not loaded over https or from this machine.
    replace(status, "this page may not copy; select the text");
  }
}
