/**
 * The equations of a program as a graph: who reads whose results. Drawn here, laid out by whoever
 * shows the view, because the library for that is in the panel's bundle and not in the widgets'.
 */

import { cut, el, replace, svg } from "./dom.js";

/** More equations than this are not drawn: those nearest to the pinned one are. */
const PROGRAM_MOST_NODES = 150;
const PROGRAM_NODE = { width: 150, height: 36 };

/**
 * @typedef {{
 *   primitive: string, outputs: string[], parent: number, inputs: number[], at: string,
 *   flops: number | null, bytes: number | null
 * }} ProgramEquation Of the panel's schema.
 * @typedef {{id: string, width: number, height: number}} ProgramNode
 * @typedef {{
 *   nodes: {id: string, x: number, y: number}[], edges: {points: {x: number, y: number}[]}[],
 *   width: number, height: number
 * }} ProgramLayout Places are those of centres.
 * @typedef {(nodes: ProgramNode[], edges: {from: string, to: string}[]) => Promise<ProgramLayout>
 *   | ProgramLayout} ProgramLayOut
 */

/** The graph of one program, of the outermost or of one inside. */
export class ProgramGraph {
  /**
   * @param {ProgramLayOut} layOut
   * @param {{hover: (links: Set<number>) => void, choose: (equation: number) => void}} events
   */
  constructor(layOut, events) {
    this.layOut = layOut;
    this.events = events;
    /** @type {ProgramEquation[]} */
    this.equations = [];
    this.parent = -1;
    this.turn = 0;
    /** @type {Map<number, Element>} */
    this.nodes = new Map();
    /** @type {Set<number>} */
    this.lit = new Set();
    /** @type {Set<number>} */
    this.pinned = new Set();
    this.path = el("div", { class: "pspx-program-path" });
    this.canvas = el("div", { class: "pspx-program-canvas", tabindex: 0, role: "group", "aria-label": "Graph" });
    this.element = el("div", { class: "pspx-program-graph" }, this.path, this.canvas);
  }

  /**
   * Show the program in which an equation stands.
   *
   * @param {ProgramEquation[]} equations
   * @param {number} around an equation, or -1.
   */
  show(equations, around) {
    const other = equations !== this.equations;
    this.equations = equations;
    const parent = around >= 0 ? (equations[around]?.parent ?? -1) : this.parent;
    if (other || parent !== this.parent || (around >= 0 && !this.nodes.has(around))) {
      this.parent = parent < equations.length ? parent : -1;
      void this.lay(around);
    }
  }

  /** @param {number} parent */
  enter(parent) {
    this.parent = parent;
    void this.lay(-1);
  }

  /** @param {number} around */
  async lay(around) {
    const turn = (this.turn += 1);
    const all = this.equations.flatMap((one, i) => (one.parent === this.parent ? [i] : []));
    const chosen = all.length > PROGRAM_MOST_NODES ? this.nearest(all, around) : all;
    const present = new Set(chosen);
    const nodes = chosen.map(i => ({ id: String(i), ...PROGRAM_NODE }));
    const edges = chosen.flatMap(i =>
      this.equations[i].inputs.filter(n => present.has(n)).map(n => ({ from: String(n), to: String(i) }))
    );
    const layout = await this.layOut(nodes, edges);
    if (turn === this.turn) {
      this.describe(all.length, chosen.length, all.includes(around));
      this.draw(layout);
    }
  }

  /**
   * The equations of a long program that are the fewest steps away from one.
   *
   * @param {number[]} all
   * @param {number} around
   */
  nearest(all, around) {
    const start = all.includes(around) ? around : all[0];
    /** @type {Map<number, number[]>} */
    const readers = new Map();
    for (const i of all) {
      for (const n of this.equations[i].inputs) {
        const known = readers.get(n);
        if (known) {
          known.push(i);
        } else {
          readers.set(n, [i]);
        }
      }
    }
    const allowed = new Set(all);
    const found = new Set([start]);
    for (const i of found) {
      for (const n of [...this.equations[i].inputs, ...(readers.get(i) ?? [])]) {
        if (allowed.has(n) && found.size < PROGRAM_MOST_NODES) {
          found.add(n);
        }
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  /** @param {number} total @param {number} drawn @param {boolean} isAround whether around a pinned one. */
  describe(total, drawn, isAround) {
    /** @type {Node[]} */
    const steps = [];
    for (let i = this.parent; i >= 0; i = this.equations[i].parent) {
      const up = this.equations[i].parent;
      steps.unshift(el("span", null, ` › ${this.equations[i].primitive}`));
      if (up < 0) {
        break;
      }
    }
    replace(
      this.path,
      el("button", { class: "pspx-quiet", type: "button", onclick: () => this.enter(-1) }, "program"),
      ...steps,
      el("span", { class: "pspx-muted" }, drawn < total ? ` · ${drawn} of ${total} equations, around ${isAround ? "the pinned one" : "the first one"}` : ` · ${total} equations`)
    );
  }

  /** @param {ProgramLayout} layout */
  draw(layout) {
    this.nodes.clear();
    const { width, height } = PROGRAM_NODE;
    const edges = layout.edges.map(({ points }) =>
      svg("polyline", { class: "pspx-program-edge", points: points.map(p => `${p.x},${p.y}`).join(" ") })
    );
    const nodes = layout.nodes.map(({ id, x, y }) => {
      const i = Number(id);
      const one = this.equations[i];
      const holds = this.equations.some(other => other.parent === i);
      const node = svg(
        "g",
        {
          class: "pspx-program-node",
          transform: `translate(${x - width / 2},${y - height / 2})`,
          tabindex: 0,
          role: "button",
          "aria-label": `${one.primitive}, ${one.outputs.join(" ")}${holds ? ", holds a program" : ""}`,
          onclick: () => this.events.choose(i),
          ondblclick: () => holds && this.enter(i),
          onpointerenter: () => this.events.hover(new Set([i])),
          onpointerleave: () => this.events.hover(new Set()),
          onkeydown: event => {
            if (event.key === "Enter" || event.key === " ") {
              event.preventDefault();
              this.events.choose(i);
            } else if (event.key === "ArrowRight" && holds) {
              this.enter(i);
            }
          }
        },
        svg("rect", { width, height, rx: 4 }),
        svg("text", { x: 8, y: 15 }, cut(holds ? `${one.primitive} ▸` : one.primitive, 20)),
        svg("text", { x: 8, y: 29, class: "pspx-program-small" }, cut(one.outputs.join(" "), 24))
      );
      this.nodes.set(i, node);
      return node;
    });
    const box = { width: Math.max(layout.width, 1), height: Math.max(layout.height, 1) };
    replace(this.canvas, svg("svg", { ...box, viewBox: `-4 -4 ${box.width + 8} ${box.height + 8}` }, ...edges, ...nodes));
    this.highlight(this.lit, this.pinned);
  }

  /** @param {Set<number>} lit @param {Set<number>} pinned */
  highlight(lit, pinned) {
    this.lit = lit;
    this.pinned = pinned;
    for (const [i, node] of this.nodes) {
      node.classList.toggle("pspx-program-lit", lit.has(i));
      node.classList.toggle("pspx-program-pinned", pinned.has(i));
    }
  }
}
