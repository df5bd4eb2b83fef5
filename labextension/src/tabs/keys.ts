/** *Keys*: the tree of PRNG keys of the session. A reused key is red, with the lines that used it. */

import type { KeyRow } from '../contract';
import type { ISession } from '../model/session';
import { button, el, replace, said } from '../views/dom';
import { trans } from '../views/trans';
import { count } from '../views/units';
import { empty, forgottenNote, type ITab, type ITabPage, placeLink } from './tab';

/** How many nodes are drawn before somebody asks for more. */
const PAGE = 300;

/** The number of reused keys of one line whose uses are listed. */
const REUSES = 5;

/** Where a node stands in the tree. */
type Position = { level: number; index: number; siblings: number; isParent: boolean };

export class KeysTab implements ITab {
  readonly name = 'keys';
  readonly label = trans.__('Keys');
  readonly topics = ['keys'] as const;
  readonly node: HTMLElement;

  constructor(private readonly _page: ITabPage) {
    this.node = el('div', { class: 'pspx-stack' }, this._summary, this._tree, this._note);
    this._tree.addEventListener('keydown', event => this._onKey(event));
  }

  show(session: ISession): void {
    const rows = session.tables.keys.inOrder();
    if (session !== this._session) {
      this._session = session;
      this._closed.clear();
      this._current = null;
      this._shown = PAGE;
    } else if (rows === this._rows) {
      return;
    }
    this._rows = rows;
    this._draw(session);
  }

  private _draw(session: ISession): void {
    const rows = this._rows;
    const ids = new Set(rows.map(row => row.id));
    const below = new Map<string | null, KeyRow[]>();
    for (const row of rows) {
      const parent = row.parent !== null && ids.has(row.parent) ? row.parent : null;
      below.set(parent, [...(below.get(parent) ?? []), row]);
    }
    const hasFocus = this._tree.contains(document.activeElement);
    const nodes: HTMLElement[] = [];
    const walk = (parent: string | null, level: number) => {
      const siblings = below.get(parent) ?? [];
      siblings.forEach((row, i) => {
        if (nodes.length < this._shown) {
          const isParent = below.has(row.id);
          nodes.push(this._node(row, { level, index: i + 1, siblings: siblings.length, isParent }));
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
    if (hasFocus) {
      current?.focus({ preventScroll: true });
    }
    this._tree.hidden = !nodes.length;
    this._summarize(session, nodes.length);
  }

  private _summarize(session: ISession, drawn: number): void {
    const rows = this._rows;
    const reused = rows.reduce((sum, row) => sum + row.reusedKeys, 0);
    const lines = new Set(rows.map(row => row.at?.text ?? row.id)).size;
    const text = trans._n('%2 key was reused.', '%2 keys were reused.', reused, count(reused));
    replace(
      this._summary,
      rows.length > 0 && [
        trans._n('%2 line made or used keys;', '%2 lines made or used keys;', lines, count(lines)),
        ' ',
        reused ? el('strong', { class: 'pspx-error' }, text) : trans.__('no key was reused.')
      ]
    );
    const more = () => {
      this._shown += 5 * PAGE;
      this._draw(session);
    };
    replace(
      this._note,
      !rows.length && empty(session.tables.keys, trans.__('No random keys yet.')),
      drawn >= this._shown && button('pspx-button', more, trans.__('Show more')),
      forgottenNote(session.tables.keys.forgotten)
    );
  }

  private _node(row: KeyRow, { level, index, siblings, isParent }: Position): HTMLElement {
    const isOpen = !this._closed.has(row.id);
    const about = [
      row.keys > 1 && trans.__('%1 keys', count(row.keys)),
      row.calls > 1 && trans.__('%1 calls', count(row.calls)),
      !row.makes && trans.__('draws'),
      row.traced && trans.__('while tracing')
    ];
    return el(
      'div',
      {
        class: 'pspx-key',
        role: 'treeitem',
        tabindex: -1,
        'data-id': row.id,
        'aria-level': level,
        'aria-posinset': index,
        'aria-setsize': siblings,
        'aria-expanded': isParent ? String(isOpen) : null,
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
          onclick: () => isParent && this._toggle(row.id)
        },
        isParent ? (isOpen ? '▾' : '▸') : row.makes ? '•' : '·'
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
        el('span', { class: 'pspx-muted pspx-small' }, about.filter(Boolean).join(' · ')),
        placeLink(row.at, this._page)
      ),
      row.reused.slice(0, REUSES).map(reuse => this._reuse(reuse)),
      row.reusedKeys > REUSES &&
        el('div', { class: 'pspx-reuse pspx-muted' }, moreKeys(row.reusedKeys - REUSES))
    );
  }

  private _reuse({ key, uses }: KeyRow['reused'][number]): HTMLElement {
    return el(
      'div',
      { class: 'pspx-reuse' },
      el('span', { class: 'pspx-error' }, `${trans.__('reused:')} `),
      el('span', { class: 'pspx-code' }, said(key, 60)),
      el(
        'ul',
        null,
        uses.map(use =>
          el(
            'li',
            null,
            el('span', { class: 'pspx-code' }, said(use.function, 60)),
            ' ',
            placeLink(use.at, this._page)
          )
        )
      )
    );
  }

  private _toggle(id: string, open = this._closed.has(id)): void {
    this._closed[open ? 'delete' : 'add'](id);
    if (this._session) {
      this._draw(this._session);
    }
  }

  /** The keys of a tree, as the practices of ARIA have them. */
  private _onKey(event: KeyboardEvent): void {
    const nodes = [...this._tree.querySelectorAll<HTMLElement>(':scope > *')];
    const at = nodes.findIndex(node => node === event.target);
    const node = nodes[at];
    if (!node) {
      return; // In a link inside of a node.
    }
    const { id = '' } = node.dataset;
    const expanded = node.getAttribute('aria-expanded');
    const level = Number(node.getAttribute('aria-level'));
    const go = (to: HTMLElement | undefined) => {
      if (to) {
        node.setAttribute('tabindex', '-1');
        to.setAttribute('tabindex', '0');
        to.focus();
      }
    };
    const isAbove = (other: HTMLElement) => Number(other.getAttribute('aria-level')) < level;
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(nodes[at + 1]),
      ArrowUp: () => go(nodes[at - 1]),
      Home: () => go(nodes[0]),
      End: () => go(nodes.at(-1)),
      ArrowRight: () => {
        if (expanded === 'false') {
          this._toggle(id, true);
        } else if (expanded) {
          go(nodes[at + 1]);
        }
      },
      ArrowLeft: () => {
        if (expanded === 'true') {
          this._toggle(id, false);
        } else {
          go(nodes.slice(0, at).findLast(isAbove));
        }
      },
      Enter: () => node.querySelector<HTMLElement>('.pspx-place')?.click()
    };
    const act = acts[event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  }

  private readonly _summary = el('div');
  private readonly _tree = el('div', {
    role: 'tree',
    'aria-label': trans.__('PRNG keys'),
    class: 'pspx-tree'
  });
  private readonly _note = el('div');
  private readonly _closed = new Set<string>();
  private _session: ISession | null = null;
  private _rows: readonly KeyRow[] = [];
  private _current: string | null = null;
  private _shown = PAGE;
}

function moreKeys(n: number): string {
  return trans._n('and %2 more key', 'and %2 more keys', n, count(n));
}
