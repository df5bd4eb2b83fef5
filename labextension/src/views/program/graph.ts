/** The equations of a program as a graph: which equation reads whose results. */

import type { Equations } from '../../contract';
import { button, cut, el, replace, svg } from '../dom';
import type { LayOut, Layout } from '../layout';
import { trans } from '../trans';
import { count } from '../units';

/** Of more equations than this, those nearest to the pinned one are drawn. */
const MOST_NODES = 150;
/** As wide as the longest text in it, with 8 pixels at each side. */
const NODE = { width: 166, height: 36 };

/** One row of the table of equations. */
export type Equation = {
  primitive: string;
  outputs: readonly string[];
  /** The equation in whose program it stands, or -1. */
  parent: number;
  /** The equations whose results it reads. */
  inputs: readonly number[];
  at: string;
  flops: number | null;
  bytes: number | null;
};

/** The table of equations by rows. */
export function equationsOf(table: Equations): Equation[] {
  return table.primitive.map((primitive, i) => ({
    primitive,
    outputs: table.outputs[i] ?? [],
    parent: table.parent[i] ?? -1,
    inputs: table.inputs[i] ?? [],
    at: table.lines[table.at[i] ?? 0] ?? '',
    flops: table.flops[i] ?? null,
    bytes: table.bytes[i] ?? null
  }));
}

export type GraphEvents = {
  hover(equations: Set<number>): void;
  choose(equation: number): void;
};

/** The graph of one program, the outermost or one inside. */
export class ProgramGraph {
  readonly path = el('div', { class: 'pspx-program-path' });
  readonly element: HTMLElement;

  constructor(
    private readonly _layOut: LayOut,
    private readonly _events: GraphEvents
  ) {
    this.element = el('div', { class: 'pspx-program-graph' }, this.path, this._canvas);
  }

  /** Show the program in which an equation stands; -1 is no equation. */
  show(equations: readonly Equation[], around: number): void {
    const isOther = equations !== this._equations;
    this._equations = equations;
    const parent = equations[around]?.parent ?? this._parent;
    if (isOther || parent !== this._parent || (around >= 0 && !this._nodes.has(around))) {
      this._parent = parent < equations.length ? parent : -1;
      this._lay(around);
    }
  }

  highlight(lit: ReadonlySet<number>, pinned: ReadonlySet<number>): void {
    this._lit = lit;
    this._pinned = pinned;
    for (const [i, node] of this._nodes) {
      node.classList.toggle('pspx-program-lit', lit.has(i));
      node.classList.toggle('pspx-program-pinned', pinned.has(i));
    }
  }

  private _enter(parent: number): void {
    this._parent = parent;
    this._lay(-1);
  }

  private _lay(around: number): void {
    const turn = (this._turn += 1);
    const all = this._equations.flatMap((one, i) => (one.parent === this._parent ? [i] : []));
    const chosen = all.length > MOST_NODES ? this._nearest(all, around) : all;
    const present = new Set(chosen);
    const nodes = chosen.map(i => ({ id: String(i), ...NODE }));
    const edges = chosen.flatMap(to =>
      (this._equations[to]?.inputs ?? [])
        .filter(from => present.has(from))
        .map(from => ({ from: String(from), to: String(to) }))
    );
    new Promise<Layout>(resolve => resolve(this._layOut(nodes, edges))).then(
      layout => {
        if (turn === this._turn) {
          this._describe(all.length, chosen.length, all.includes(around));
          this._draw(layout);
        }
      },
      () => {
        if (turn === this._turn) {
          replace(this._canvas, trans.__('The graph could not be laid out.'));
        }
      }
    );
  }

  /** The equations of a long program that are the fewest steps away from one, or from the first. */
  private _nearest(all: readonly number[], around: number): number[] {
    const allowed = new Set(all);
    const readers = new Map<number, number[]>();
    for (const i of all) {
      for (const n of this._equations[i]?.inputs ?? []) {
        const known = readers.get(n);
        if (known) {
          known.push(i);
        } else {
          readers.set(n, [i]);
        }
      }
    }
    const found = new Set(allowed.has(around) ? [around] : all.slice(0, 1));
    // A set that grows while it is walked: breadth first.
    for (const i of found) {
      for (const n of [...(this._equations[i]?.inputs ?? []), ...(readers.get(i) ?? [])]) {
        if (allowed.has(n) && found.size < MOST_NODES) {
          found.add(n);
        }
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  private _describe(total: number, drawn: number, isAround: boolean): void {
    const steps: Node[] = [];
    for (let one = this._equations[this._parent]; one; one = this._equations[one.parent]) {
      steps.unshift(el('span', null, ` › ${one.primitive}`));
    }
    const all = trans._n('%2 equation', '%2 equations', total, count(total));
    const text =
      drawn === total
        ? all
        : isAround
          ? trans.__('%1 of %2, nearest to the pinned one', count(drawn), all)
          : trans.__('%1 of %2, nearest to the first one', count(drawn), all);
    replace(
      this.path,
      button('pspx-quiet', () => this._enter(-1), trans.__('program')),
      steps,
      el('span', { class: 'pspx-muted' }, ` · ${text}`)
    );
  }

  private _draw(layout: Layout): void {
    this._nodes.clear();
    const edges = layout.edges.map(({ points }) =>
      svg('polyline', {
        class: 'pspx-program-edge',
        points: points.map(({ x, y }) => `${x},${y}`).join(' ')
      })
    );
    const holders = new Set(this._equations.map(one => one.parent));
    const nodes = layout.nodes.map(({ id, x, y }) => {
      const i = Number(id);
      const node = this._node(i, holders.has(i));
      node.setAttribute('transform', `translate(${x - NODE.width / 2},${y - NODE.height / 2})`);
      this._nodes.set(i, node);
      return node;
    });
    const box = { width: Math.max(layout.width, 1), height: Math.max(layout.height, 1) };
    const viewBox = `-4 -4 ${box.width + 8} ${box.height + 8}`;
    replace(this._canvas, svg('svg', { ...box, viewBox }, ...edges, ...nodes));
    this.highlight(this._lit, this._pinned);
  }

  private _node(i: number, isHolder: boolean): SVGElement {
    const { primitive = '', outputs = [] } = this._equations[i] ?? {};
    const types = outputs.join(' ');
    const label = [primitive, types, isHolder && trans.__('contains a program')];
    return svg(
      'g',
      {
        class: 'pspx-program-node',
        tabindex: 0,
        role: 'button',
        'aria-label': label.filter(Boolean).join(', '),
        onclick: () => this._events.choose(i),
        ondblclick: () => isHolder && this._enter(i),
        onpointerenter: () => this._events.hover(new Set([i])),
        onpointerleave: () => this._events.hover(new Set()),
        onkeydown: event => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            this._events.choose(i);
          } else if (event.key === 'ArrowRight' && isHolder) {
            this._enter(i);
          }
        }
      },
      svg('rect', { ...NODE, rx: 4 }),
      svg('text', { x: 8, y: 15 }, cut(isHolder ? `${primitive} ▸` : primitive, 20)),
      svg('text', { x: 8, y: 29, class: 'pspx-program-small' }, cut(types, 24))
    );
  }

  private readonly _canvas = el('div', {
    class: 'pspx-program-canvas',
    tabindex: 0,
    role: 'group',
    'aria-label': trans.__('Graph')
  });
  private readonly _nodes = new Map<number, SVGElement>();
  private _equations: readonly Equation[] = [];
  private _parent = -1;
  private _turn = 0;
  private _lit: ReadonlySet<number> = new Set();
  private _pinned: ReadonlySet<number> = new Set();
}
