/**
 * *Keys*: the tree of PRNG keys of the session. A key that was used twice is red, with both lines.
 */

import type { KeyRow } from '../contract';
import type { KernelModel } from '../model';
import { count, el, replace, said } from '../shared';
import { Drawn, empty, forgottenNote, type Page, placeLink, type Tab } from './tab';

/** How many nodes are drawn before somebody asks for more. */
const PAGE = 300;

/** Of how many reused keys of one line the uses are listed. */
const REUSES = 5;

export class KeysTab implements Tab {
  readonly name = 'keys';
  readonly label = 'Keys';
  readonly topics = ['keys'] as const;
  readonly node: HTMLElement;

  constructor(private _page: Page) {
    this.node = el('div', { class: 'pspx-stack' }, this._summary, this._tree, this._note);
    this._tree.addEventListener('keydown', event => this._onKey(event));
  }

  show(model: KernelModel): void {
    const rows = model.tables.keys.inOrder();
    if (this._drawn.isOther(model)) {
      this._model = model;
      this._closed.clear();
      this._current = null;
      this._shown = PAGE;
    } else if (rows === this._rows) {
      return;
    }
    this._rows = rows;
    this._draw();
  }

  private _draw(): void {
    const rows = this._rows;
    const ids = new Set(rows.map(row => row.id));
    const below = new Map<string | null, KeyRow[]>();
    for (const row of rows) {
      const parent = row.parent !== null && ids.has(row.parent) ? row.parent : null;
      below.set(parent, [...(below.get(parent) ?? []), row]);
    }
    const focused = this._tree.contains(document.activeElement);
    const nodes: HTMLElement[] = [];
    const walk = (parent: string | null, level: number) => {
      const siblings = below.get(parent) ?? [];
      siblings.forEach((row, i) => {
        if (nodes.length < this._shown) {
          nodes.push(this._node(row, level, i + 1, siblings.length, below.has(row.id)));
          if (!this._closed.has(row.id)) {
            walk(row.id, level + 1);
          }
        }
      });
    };
    walk(null, 1);
    this._tree.replaceChildren(...nodes);
    const current = nodes.find(node => node.dataset.id === this._current) ?? nodes[0];
    current?.setAttribute('tabindex', '0');
    if (focused) {
      current?.focus({ preventScroll: true });
    }
    this._tree.hidden = !nodes.length;
    this._summarize(rows, nodes.length);
  }

  private _summarize(rows: readonly KeyRow[], drawn: number): void {
    const reused = rows.reduce((sum, row) => sum + row.reusedKeys, 0);
    const lines = new Set(rows.map(row => row.at?.text ?? row.id)).size;
    replace(
      this._summary,
      rows.length > 0 && [
        `${lines} ${lines === 1 ? 'line' : 'lines'} made or used keys; `,
        reused
          ? el(
              'strong',
              { class: 'pspx-error' },
              `${reused} ${reused === 1 ? 'key was' : 'keys were'} used more than once.`
            )
          : 'no key was used twice.'
      ]
    );
    replace(
      this._note,
      !rows.length && empty(this._model?.tables.keys, 'No PRNG key has been made yet.'),
      drawn >= this._shown &&
        el(
          'button',
          {
            class: 'pspx-button',
            type: 'button',
            onclick: () => {
              this._shown += 5 * PAGE;
              this._draw();
            }
          },
          'Show more'
        ),
      forgottenNote(this._model?.tables.keys.forgotten ?? 0)
    );
  }

  private _node(
    row: KeyRow,
    level: number,
    position: number,
    siblings: number,
    parent: boolean
  ): HTMLElement {
    const open = !this._closed.has(row.id);
    const times = row.calls > 1 ? `${count(row.calls)} calls` : '';
    const keys = row.keys > 1 ? `${count(row.keys)} keys` : '';
    return el(
      'div',
      {
        class: 'pspx-key',
        role: 'treeitem',
        tabindex: -1,
        'data-id': row.id,
        'aria-level': level,
        'aria-posinset': position,
        'aria-setsize': siblings,
        'aria-expanded': parent ? String(open) : null,
        style: `--pspx-level:${Math.min(level, 24)}`,
        onfocus: event => {
          if (event.target === event.currentTarget) {
            this._current = row.id;
          }
        }
      },
      el(
        'span',
        {
          class: 'pspx-twist',
          'aria-hidden': 'true',
          onclick: () => parent && this._toggle(row.id)
        },
        parent ? (open ? '▾' : '▸') : row.makes ? '•' : '·'
      ),
      el(
        'div',
        { class: 'pspx-key-line' },
        el(
          'span',
          { class: `pspx-code${row.reused.length ? ' pspx-error' : ''}`, title: row.function },
          said(row.expression, 80)
        ),
        row.names.length > 0 &&
          el('span', { class: 'pspx-code pspx-names' }, '→ ', said(row.names.join(', '), 60)),
        el(
          'span',
          { class: 'pspx-muted pspx-small' },
          [keys, times, row.makes ? '' : 'draws', row.traced ? 'while tracing' : '']
            .filter(Boolean)
            .join(' · ')
        ),
        placeLink(row.at, this._page)
      ),
      row.reused.slice(0, REUSES).map(reuse =>
        el(
          'div',
          { class: 'pspx-reuse' },
          el('span', { class: 'pspx-error' }, 'used twice: '),
          el('span', { class: 'pspx-code' }, said(reuse.key, 60)),
          el(
            'ul',
            null,
            reuse.uses.map(use =>
              el(
                'li',
                null,
                el('span', { class: 'pspx-code' }, said(use.function, 60)),
                ' ',
                placeLink(use.at, this._page)
              )
            )
          )
        )
      ),
      row.reusedKeys > REUSES &&
        el('div', { class: 'pspx-reuse pspx-muted' }, moreKeys(row.reusedKeys - REUSES))
    );
  }

  private _toggle(id: string, open = this._closed.has(id)): void {
    this._closed[open ? 'delete' : 'add'](id);
    this._draw();
  }

  /** The keys of a tree, as ARIA's practices have them. */
  private _onKey(event: KeyboardEvent): void {
    const nodes = [...this._tree.children] as HTMLElement[];
    const at = nodes.indexOf(event.target as HTMLElement);
    if (at < 0) {
      return; // In a link inside of a node.
    }
    const node = nodes[at];
    const expanded = node.getAttribute('aria-expanded');
    const level = Number(node.getAttribute('aria-level'));
    const go = (to: HTMLElement | undefined) => {
      if (to) {
        node.setAttribute('tabindex', '-1');
        to.setAttribute('tabindex', '0');
        to.focus();
      }
    };
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(nodes[at + 1]),
      ArrowUp: () => go(nodes[at - 1]),
      Home: () => go(nodes[0]),
      End: () => go(nodes[nodes.length - 1]),
      ArrowRight: () =>
        expanded === 'false' ? this._toggle(node.dataset.id!, true) : expanded && go(nodes[at + 1]),
      ArrowLeft: () =>
        expanded === 'true'
          ? this._toggle(node.dataset.id!, false)
          : go(
              nodes
                .slice(0, at)
                .reverse()
                .find(other => Number(other.getAttribute('aria-level')) < level)
            ),
      Enter: () => node.querySelector<HTMLElement>('.pspx-place')?.click()
    };
    if (acts[event.key]) {
      event.preventDefault();
      event.stopPropagation();
      acts[event.key]();
    }
  }

  private _model: KernelModel | null = null;
  private _summary = el('div');
  private _tree = el('div', { role: 'tree', 'aria-label': 'PRNG keys', class: 'pspx-tree' });
  private _note = el('div');
  private _drawn = new Drawn();
  private _rows: readonly KeyRow[] = [];
  private _closed = new Set<string>();
  private _current: string | null = null;
  private _shown = PAGE;
}

function moreKeys(n: number): string {
  return `and ${n} more ${n === 1 ? 'key' : 'keys'}`;
}
