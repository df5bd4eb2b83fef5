/** The selected node of a tree of keys: its code, what can be done with it, and its numbers. */

import { append, button, el, replace, said } from '../dom';
import { trans } from '../trans';
import type { DrawnSamples, KeyDetail, KeyTree } from '../../contract';
import { facts, histogram, remembered, rounds, type, warnings } from './facts';

/** What a node can be asked for. */
export type Question = {
  do: 'split' | 'fold_in' | 'draw' | 'remove' | 'look';
  node: number;
} & Record<string, unknown>;

export class Detail {
  readonly element = el('div', {
    class: 'pspx-keys-detail',
    role: 'group',
    'aria-label': trans.__('Selected node')
  });

  constructor(private readonly _ask: (question: Question) => void) {}

  /** The distribution to preview, if the preview is open. */
  get preview(): string | null {
    return this._open.get('preview') ? this._typed.distribution : null;
  }

  draw(tree: KeyTree, node: KeyDetail, isEnabled: boolean): void {
    this._isEnabled = isEnabled;
    const field = this.element.ownerDocument.activeElement?.getAttribute('data-pspx-field');
    const row = tree.nodes.find(other => other.id === node.id);
    replace(this.element, this._head(node));
    if (node.drawn) {
      append(this.element, this._samples(node, node.drawn));
    } else {
      append(
        this.element,
        this._forms(tree, node),
        row ? warnings(tree, row, id => this._look(id)) : null,
        facts(node),
        node.blocks.map(block => rounds(block, this._open))
      );
    }
    if (field) {
      this.element.querySelector<HTMLElement>(`[data-pspx-field="${CSS.escape(field)}"]`)?.focus();
    }
  }

  private _look(node: number): void {
    this._ask({ do: 'look', node });
  }

  private _head(node: KeyDetail): HTMLElement {
    const copied = el('span', { class: 'pspx-muted' });
    return el(
      'div',
      { class: 'pspx-keys-head' },
      el('code', { class: 'pspx-code' }, said(node.code, 600)),
      button('pspx-button', () => copyCode(node.code, copied), trans.__('Copy'), {
        'data-pspx-field': 'copy'
      }),
      copied,
      node.kind !== 'root' &&
        button(
          'pspx-button',
          () => this._ask({ do: 'remove', node: node.id }),
          trans.__('Remove'),
          this._asking('remove')
        )
    );
  }

  /** Attributes of a button that works only while the kernel answers. */
  private _asking(field: string) {
    return { 'data-pspx-field': field, 'data-pspx-asks': true, disabled: !this._isEnabled };
  }

  private _forms(tree: KeyTree, node: KeyDetail): HTMLElement {
    const { id } = node;
    const typed = this._typed;
    const chooser = el(
      'select',
      {
        class: 'pspx-field',
        'aria-label': trans.__('Distribution'),
        'data-pspx-field': 'distribution',
        onchange: () => {
          typed.distribution = chooser.value;
          this._wantPreview(node);
        }
      },
      tree.distributions.map(name =>
        el('option', { value: name, selected: name === typed.distribution }, name)
      )
    );
    return el(
      'div',
      { class: 'pspx-keys-forms' },
      this._form(
        trans.__('Split'),
        'split',
        () => ({ do: 'split', node: id, count: wholeOrNull(typed.count) }),
        this._field('count', trans.__('Number of keys'), 'numeric')
      ),
      this._form(
        trans.__('Fold in'),
        'fold in',
        () => ({ do: 'fold_in', node: id, number: wholeOrNull(typed.number) }),
        this._field('number', trans.__('Number to fold in'), 'numeric')
      ),
      this._form(
        trans.__('Draw'),
        'draw',
        () => ({ do: 'draw', node: id, distribution: typed.distribution, shape: typed.shape }),
        chooser,
        this._field('shape', trans.__('Shape of the samples'), 'text')
      ),
      this._preview(node)
    );
  }

  private _field(name: 'count' | 'number' | 'shape', label: string, mode: string): HTMLElement {
    const input = el('input', {
      class: 'pspx-field',
      value: this._typed[name],
      inputmode: mode,
      'aria-label': label,
      'data-pspx-field': name,
      oninput: () => {
        this._typed[name] = input.value;
      }
    });
    return input;
  }

  private _form(
    verb: string,
    field: string,
    question: () => Question,
    ...fields: HTMLElement[]
  ): HTMLElement {
    return el(
      'form',
      {
        onsubmit: event => {
          event.preventDefault();
          this._ask(question());
        },
        // JupyterLab takes the submission by Enter away from forms in outputs.
        onkeydown: event => {
          if (event.key === 'Enter' && event.target instanceof HTMLInputElement) {
            event.preventDefault();
            event.target.form?.requestSubmit();
          }
        }
      },
      el('button', { class: 'pspx-button', ...this._asking(field) }, verb),
      fields
    );
  }

  private _preview(node: KeyDetail): HTMLElement {
    const { preview } = node;
    const fold = remembered(
      this._open,
      'preview',
      el(
        'summary',
        {
          title: trans.__('What a draw would look like. It adds no node and does not use the key.'),
          'data-pspx-field': 'preview'
        },
        trans.__('Preview of %1', preview?.distribution ?? this._typed.distribution)
      ),
      ...(preview ? histogram(preview) : [])
    );
    fold.classList.add('pspx-keys-preview');
    fold.addEventListener('toggle', () => this._wantPreview(node));
    return fold;
  }

  /** Ask for the histogram if it is to be seen and another one is there. */
  private _wantPreview(node: KeyDetail): void {
    if (this.preview !== null && node.preview?.distribution !== this.preview) {
      this._look(node.id);
    }
  }

  private _samples(node: KeyDetail, drawn: DrawnSamples): Node[] {
    if (!drawn.size) {
      const text = `${type(drawn.dtype, drawn.shape)}: ${trans.__('no elements')}`;
      return [el('p', { class: 'pspx-muted' }, text)];
    }
    const more = drawn.size > drawn.values.length ? '  …' : '';
    const parts: Node[] = [
      ...histogram(drawn),
      el('p', { class: 'pspx-code' }, drawn.values.join('  ') + more)
    ];
    if (!drawn.block) {
      const text = trans.__('Each element takes more than one hash, so no rounds are shown.');
      return [...parts, el('p', { class: 'pspx-muted' }, text)];
    }
    const index = el('input', {
      class: 'pspx-field',
      type: 'number',
      min: 0,
      max: drawn.size - 1,
      value: drawn.index,
      'aria-label': trans.__('Element, in row-major order'),
      'data-pspx-field': 'index',
      onchange: () => {
        this._ask({ do: 'look', node: node.id, index: wholeOrNull(index.value) });
      }
    });
    return [
      ...parts,
      el(
        'p',
        { class: 'pspx-row' },
        trans.__('Element'),
        ' ',
        index,
        el('span', { class: 'pspx-code' }, `= ${drawn.value}`),
        ` ${trans.__('from the bits')} `,
        el('span', { class: 'pspx-code' }, drawn.bits)
      ),
      rounds(drawn.block, this._open)
    ];
  }

  // What was typed or unfolded stays, whichever node is selected.
  private readonly _typed = { count: '2', number: '0', distribution: 'normal', shape: '1000' };
  private readonly _open = new Map([['rounds', true]]);
  private _isEnabled = true;
}

function wholeOrNull(text: string): number | null {
  return /^\s*\d+\s*$/.test(text) ? Number(text) : null;
}

async function copyCode(text: string, status: Element): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    replace(status, trans.__('copied'));
  } catch {
    // Browsers let only pages from https or from this machine copy.
    replace(status, trans.__('This page cannot copy. Select the text.'));
  }
}
