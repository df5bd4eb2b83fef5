/**
 * Which lines of a listing are new and which are gone, compared with the listing before.
 *
 * The names of variables do not count, because one more equation renames all that follow.
 */

import type { Form } from './rows';

/** If more lines differ, everything between the first and the last of them counts as different. */
const MOST_EDITS = 1000;

/** `index` is a line of the listing before if it is gone, else of the listing now. */
export type Edit = { kind: 'same' | 'new' | 'gone'; index: number };

/** A line without the names that the printer or the compiler gave. */
export function nameless(form: Form, text: string): string {
  if (form === 'source') {
    return text;
  }
  if (form === 'jaxpr') {
    return text
      .replace(/(?:\b[a-z]+|_):/g, ':')
      .replace(
        /( = [\w-]+(?:\[[^\]]*\])?|^ *\])((?: [^ ]+)*)$/,
        (_, head: string, operands: string) => {
          const literals = operands.split(' ').filter(word => word.includes(':'));
          return [head, ...literals].join(' ');
        }
      );
  }
  return text.replace(/%[\w.-]+(?:[:#]\d+)?/g, '%');
}

/** What became of the lines, in the order of the listing now. */
export function editsOf(before: readonly string[], now: readonly string[]): Edit[] {
  let start = 0;
  while (start < before.length && start < now.length && before[start] === now[start]) {
    start += 1;
  }
  let endBefore = before.length;
  let endNow = now.length;
  while (endBefore > start && endNow > start && before[endBefore - 1] === now[endNow - 1]) {
    endBefore -= 1;
    endNow -= 1;
  }
  const same = (index: number): Edit => ({ kind: 'same', index });
  return [
    ...range(0, start).map(same),
    ...middle(before.slice(start, endBefore), now.slice(start, endNow)).map(({ kind, index }) => ({
      kind,
      index: start + index
    })),
    ...range(endNow, now.length).map(same)
  ];
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** The shortest list of edits, after Myers, "An O(ND) difference algorithm" (1986). */
function middle(a: readonly string[], b: readonly string[]): Edit[] {
  const trail = trailOf(a, b);
  if (trail === null) {
    return [
      ...a.map((_, index): Edit => ({ kind: 'gone', index })),
      ...b.map((_, index): Edit => ({ kind: 'new', index }))
    ];
  }
  const edits: Edit[] = [];
  let x = a.length;
  let y = b.length;
  trail
    .slice(0, -1)
    .reverse()
    .forEach((furthest, i) => {
      const d = trail.length - 1 - i;
      const k = x - y;
      const isDown = goesDown(furthest, k, d);
      const from = isDown ? k + 1 : k - 1;
      const fromX = furthest.get(from) ?? 0;
      const fromY = fromX - from;
      while (x > (isDown ? fromX : fromX + 1) || (isDown && y > fromY + 1)) {
        x -= 1;
        y -= 1;
        edits.push({ kind: 'same', index: y });
      }
      if (isDown) {
        y -= 1;
        edits.push({ kind: 'new', index: y });
      } else {
        x -= 1;
        edits.push({ kind: 'gone', index: x });
      }
    });
  while (x > 0 && y > 0) {
    x -= 1;
    y -= 1;
    edits.push({ kind: 'same', index: y });
  }
  return edits.reverse();
}

/** How far each diagonal reaches after each number of edits; `null` if there are too many edits. */
function trailOf(a: readonly string[], b: readonly string[]): Map<number, number>[] | null {
  const trail: Map<number, number>[] = [];
  let reached = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, MOST_EDITS); d += 1) {
    const now = new Map<number, number>();
    for (let k = -d; k <= d; k += 2) {
      const isDown = goesDown(reached, k, d);
      let x = isDown ? (reached.get(k + 1) ?? 0) : (reached.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x += 1;
      }
      now.set(k, x);
      if (x >= a.length && x - k >= b.length) {
        trail.push(now);
        return trail;
      }
    }
    trail.push(now);
    reached = now;
  }
  return null;
}

/** Whether the furthest way onto diagonal `k` with `d` edits takes a line of `b`. */
function goesDown(reached: ReadonlyMap<number, number>, k: number, d: number): boolean {
  return k === -d || (k !== d && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
}
