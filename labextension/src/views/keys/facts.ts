/** What stands beside the tree for a selected key: its warnings, its bits, and the hash round by round. */

import { append, button, el, said } from '../dom';
import { histogramFigure } from '../histogram';
import { trans } from '../trans';
import { count } from '../units';
import { bitStrip } from './bits';
import type { HashBlock, KeyDetail, KeyNode, KeyTree, Samples } from '../../contract';

/** What is wrong with a key, and which other nodes have its bits. */
export function warnings(tree: KeyTree, row: KeyNode, look: (id: number) => void): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (row.used.length) {
    parts.push(
      el(
        'p',
        { class: 'pspx-error' },
        trans.__(
          'Used %1 times (%2), so the results are not independent.',
          row.used.length,
          row.used.join(', ')
        ),
        ' ',
        trans.__('Split the key first, and use each new key once.')
      )
    );
  }
  const others = tree.nodes.filter(
    other => other.id !== row.id && other.alike && other.alike === row.alike
  );
  if (others.length) {
    const links = others.flatMap((other, i) => [
      i ? ', ' : '',
      button('pspx-quiet', () => look(other.id), el('u', null, said(other.label, 60)))
    ]);
    parts.push(el('p', null, trans.__('The same bits as'), ' ', links, '.'));
  }
  return parts;
}

/** The numbers of a key, its bits, and where they come from. */
export function facts(node: KeyDetail): HTMLElement {
  const words = node.numbers.map(word => word.toString(16).padStart(8, '0'));
  const origin = node.blocks.length
    ? [
        trans.__('Hash of the counter'),
        ' ',
        el('span', { class: 'pspx-code' }, node.blocks.map(counter).join(', ')),
        ' ',
        trans.__('under'),
        ' ',
        el('code', { class: 'pspx-code' }, said(node.origin, 200))
      ]
    : [trans.__('None: this is the first key.')];
  return el(
    'dl',
    { class: 'pspx-keys-facts' },
    el('dt', null, trans.__('numbers')),
    el('dd', { class: 'pspx-code' }, node.numbers.join(' ')),
    el('dt', null, trans.__('bits')),
    el('dd', { class: 'pspx-code' }, `${words.join(' ')} `, bitStrip(words)),
    el('dt', null, trans.__('hash')),
    el('dd', null, origin)
  );
}

/** The rounds of one hash, folded or open as `memory` says under `rounds`. */
export function rounds(block: HashBlock, memory: Map<string, boolean>): HTMLElement {
  const taken = {
    both: trans.__('both words are used'),
    first: trans.__('the first word is used'),
    second: trans.__('the second word is used'),
    xor: trans.__('the exclusive or of both words is used')
  }[block.taken];
  const titles = [trans.__('after'), trans.__('first'), trans.__('second'), trans.__('bits')];
  const body = block.steps.map(step =>
    el(
      'tr',
      { class: step.what.startsWith('+') ? 'pspx-keys-injected' : null },
      el('th', { scope: 'row', class: 'pspx-left' }, step.what),
      step.words.map(word => el('td', { class: 'pspx-code' }, word)),
      el('td', { class: 'pspx-left' }, bitStrip(step.words))
    )
  );
  return remembered(
    memory,
    'rounds',
    el('summary', null, trans.__('Threefry-2x32 of %1: 20 rounds; %2', counter(block), taken)),
    el(
      'div',
      {
        class: 'pspx-keys-rounds',
        tabindex: 0,
        role: 'group',
        'aria-label': trans.__('Rounds of the hash')
      },
      el(
        'table',
        { class: 'pspx-table' },
        el('caption', null, trans.__('Key %1, added in the rows marked +', block.key.join(' '))),
        el(
          'thead',
          null,
          el(
            'tr',
            null,
            titles.map((title, i) =>
              el('th', { scope: 'col', class: i % 3 ? null : 'pspx-left' }, title)
            )
          )
        ),
        el('tbody', null, body)
      )
    )
  );
}

/** The histogram of samples, beside the one that the distribution expects. */
export function histogram({
  histogram: found,
  facts: numbers,
  size,
  dtype,
  shape
}: Samples): HTMLElement[] {
  if (!found || !numbers) {
    return [];
  }
  const told = Object.entries(numbers).map(([name, value]) => `${name} ${fourDigits(value)}`);
  const outside = found.outside
    ? ` ${trans._n('%2 sample lies outside.', '%2 samples lie outside.', found.outside, count(found.outside))}`
    : '';
  return [
    el('p', { class: 'pspx-muted' }, [type(dtype, shape), ...told].join(' · ')),
    histogramFigure(
      found,
      trans.__(
        'Histogram of %1 samples: %2. The line is the expected number.',
        count(size),
        told.join(', ')
      ),
      fourDigits
    ),
    el('p', { class: 'pspx-muted' }, trans.__('Bars: these samples. Line: expected.'), outside)
  ];
}

/** `float32[30, 20]` */
export function type(dtype: string, shape: readonly number[]): string {
  return `${dtype}[${shape.join(', ')}]`;
}

/** A part that folds; `memory` keeps whether it is open, whichever node is selected. */
export function remembered(
  memory: Map<string, boolean>,
  name: string,
  ...content: Node[]
): HTMLDetailsElement {
  const fold = el('details', {
    open: memory.get(name) === true,
    ontoggle: () => {
      memory.set(name, fold.open);
    }
  });
  append(fold, ...content);
  return fold;
}

function counter(block: HashBlock): string {
  return `(${block.counter.join(', ')})`;
}

function fourDigits(value: number): string {
  return String(Number(value.toPrecision(4)));
}
