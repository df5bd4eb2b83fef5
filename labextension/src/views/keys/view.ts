/**
 * What becomes of a random key: a tree that is built by clicks, and beside it one of its nodes in
 * full: its bits, the hash that made them round by round, samples, and where the notebook used it.
 *
 * Python computes all numbers; the view only shows them.
 */

import { el, messageOf, replace, said, stylesheet } from '../dom';
import { HISTOGRAM_STYLE } from '../histogram';
import { LOOK } from '../look';
import { trans } from '../trans';
import type { KeyDetail, KeyNode, KeyTree } from '../../contract';
import { Detail, type Question } from './detail';
import { remembered } from './facts';
import { KEYS_STYLE } from './style';

export type KeysActions = {
  /** Send what was clicked; rejected with the reason if it cannot be done. */
  ask(question: Question & { preview?: string }): Promise<string>;
};

export type KeysView = {
  update(tree: KeyTree, detail: KeyDetail): void;
  /** Whether there is a kernel to ask. */
  enable(isEnabled: boolean): void;
  dispose(): void;
};

export function keysView(host: HTMLElement, actions: KeysActions): KeysView {
  const view = new View(actions);
  host.append(view.root);
  return view;
}

class View implements KeysView {
  readonly root: HTMLElement;

  constructor(private readonly _actions: KeysActions) {
    this._detail = new Detail(question => this._ask(question));
    this.root = el(
      'div',
      { class: 'pspx-view pspx-keys', role: 'group', 'aria-label': trans.__('Random keys') },
      stylesheet(LOOK + HISTOGRAM_STYLE + KEYS_STYLE),
      el(
        'div',
        { class: 'pspx-keys-columns' },
        el('div', null, this._nodes, this._note, this._notebook),
        this._detail.element
      ),
      this._status
    );
    this._nodes.addEventListener('keydown', event => this._pressed(event));
  }

  update(tree: KeyTree, detail: KeyDetail): void {
    const isOther = this._tree !== tree;
    this._tree = tree;
    if (isOther) {
      this._drawTree(tree);
      this._drawNotebook(tree);
    }
    if (isOther || this._shown !== detail) {
      this._shown = detail;
      this._detail.draw(tree, detail, this._isEnabled);
    }
  }

  enable(isEnabled: boolean): void {
    this._isEnabled = isEnabled;
    for (const button of this.root.querySelectorAll('[data-pspx-asks]')) {
      button.toggleAttribute('disabled', !isEnabled);
    }
    replace(this._status, isEnabled ? '' : noKernel());
  }

  dispose(): void {
    this.root.remove();
  }

  private _ask(question: Question): void {
    if (!this._isEnabled) {
      replace(this._status, noKernel());
      return;
    }
    const { preview } = this._detail;
    this._actions.ask(preview === null ? question : { preview, ...question }).then(
      () => replace(this._status),
      (error: unknown) => replace(this._status, said(messageOf(error), 400))
    );
  }

  private _look(node: number): void {
    this._ask({ do: 'look', node });
  }

  private _pressed(event: KeyboardEvent): void {
    const { nodes = [], selected } = this._tree ?? {};
    const at = nodes.findIndex(node => node.id === selected);
    const here = nodes[at];
    if (!here) {
      return;
    }
    const to: Record<string, KeyNode | undefined> = {
      ArrowDown: nodes[at + 1],
      ArrowUp: nodes[at - 1],
      Home: nodes[0],
      End: nodes.at(-1),
      ArrowLeft: nodes.find(node => node.id === here.parent),
      ArrowRight: nodes.find(node => node.parent === here.id)
    };
    if (event.key in to) {
      event.preventDefault();
      const next = to[event.key];
      if (next) {
        this._look(next.id);
      }
    } else if (event.key === 'Delete' && here.kind !== 'root') {
      event.preventDefault();
      this._ask({ do: 'remove', node: here.id });
    }
    // The notebook has shortcuts of its own.
    event.stopPropagation();
  }

  private _drawTree(tree: KeyTree): void {
    const box = this._nodes;
    const hadFocus = box.contains(this.root.ownerDocument.activeElement);
    const selected = tree.nodes.find(node => node.id === tree.selected);
    replace(
      box,
      tree.nodes.map(node => this._node(node, selected))
    );
    const current = box.querySelector<HTMLElement>('[aria-selected="true"]');
    if (hadFocus) {
      current?.focus({ preventScroll: true });
    }
    const top = current?.offsetTop ?? 0;
    if (current && (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 24)) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  }

  private _node(node: KeyNode, selected: KeyNode | undefined): HTMLElement {
    const isSelected = node === selected;
    const isLit = node.alike !== '' && node.alike === selected?.alike;
    return el(
      'div',
      {
        class: isLit ? 'pspx-keys-node pspx-keys-lit' : 'pspx-keys-node',
        role: 'treeitem',
        'aria-level': node.depth + 1,
        'aria-selected': String(isSelected),
        tabindex: isSelected ? 0 : -1,
        style: `padding-inline-start: ${8 + 16 * node.depth}px`,
        onclick: () => this._look(node.id)
      },
      el('span', null, said(node.label, 60)),
      node.alike !== '' &&
        el(
          'span',
          {
            class: 'pspx-keys-alike',
            title: trans.__('All nodes with this letter have the same bits')
          },
          el('span', { class: 'pspx-hidden' }, `${trans.__('same bits:')} `),
          node.alike
        ),
      node.used.length > 0 && el('span', { class: 'pspx-error' }, trans.__('reused')),
      node.kind !== 'draw' &&
        el('span', { class: 'pspx-code pspx-muted pspx-keys-words' }, node.words.join(' '))
    );
  }

  private _drawNotebook(tree: KeyTree): void {
    replace(this._note, said(tree.note, 200));
    const lines = tree.notebook.map(line => {
      const look = line.is_bad ? null : 'pspx-muted';
      const part = (text: string) =>
        text !== '' && el('span', { class: look }, '  ', said(text, 100));
      return el(
        'div',
        { class: line.is_bad ? 'pspx-error' : null },
        line.indent,
        said(line.text, 100),
        part(line.place),
        part(line.remark),
        line.is_bad && `  ${trans.__('reused')}`
      );
    });
    replace(
      this._notebook,
      lines.length > 0 &&
        remembered(
          this._open,
          'notebook',
          el('summary', null, trans.__('In the notebook')),
          el(
            'div',
            {
              class: 'pspx-keys-lines pspx-code',
              tabindex: 0,
              role: 'group',
              'aria-label': trans.__('Lines of the notebook')
            },
            lines
          )
        )
    );
  }

  private readonly _nodes = el('div', {
    class: 'pspx-keys-tree',
    role: 'tree',
    'aria-label': trans.__('Keys')
  });
  private readonly _detail: Detail;
  private readonly _note = el('div', { class: 'pspx-muted' });
  private readonly _notebook = el('div');
  private readonly _status = el('div', { role: 'status', class: 'pspx-error' });
  private readonly _open = new Map([['notebook', true]]);
  private _tree: KeyTree | null = null;
  private _shown: KeyDetail | null = null;
  private _isEnabled = true;
}

function noKernel(): string {
  return trans.__('The kernel is not responding.');
}
