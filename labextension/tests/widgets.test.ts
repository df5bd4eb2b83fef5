/**
 * What the widgets have and the panel has not: graphs that are laid out in the page, and a kernel
 * that may be gone.
 */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { kernelOf } from '../src/widgets/host';
import { layOut } from '../src/views/layout';

// ---- Layout --------------------------------------------------------------------------------------

let state = 1;
const random = (n: number) => {
  state = (state * 48271) % 2147483647;
  return state % n;
};

/** A program of so many equations, each of which reads up to three earlier ones. */
function graph(size: number, reach: number) {
  const nodes = Array.from({ length: size }, (_, i) => ({ id: `n${i}`, width: 150, height: 36 }));
  const edges = nodes.flatMap((to, i) =>
    [...new Set(Array.from({ length: random(4) }, () => i - 1 - random(reach)))]
      .filter(j => j >= 0)
      .map(j => ({ from: nodes[j].id, to: to.id }))
  );
  return { nodes, edges };
}

/** Whether a point lies on the border of the box of a node. */
function onBorder(point: { x: number; y: number }, node: { x: number; y: number }): boolean {
  const beyond = Math.max(Math.abs(point.x - node.x) - 75, Math.abs(point.y - node.y) - 18);
  return Math.abs(beyond) < 1e-6;
}

test.each([
  [1, 1],
  [40, 5],
  [150, 12],
  [150, 150]
])('a graph of %i nodes: readers are below, nothing overlaps, all is in the picture', (n, far) => {
  const { nodes, edges } = graph(n, far);
  const laid = layOut(nodes, edges);
  const at = new Map(laid.nodes.map(one => [one.id, one]));
  expect(laid.nodes.map(one => one.id)).toEqual(nodes.map(one => one.id));
  edges.forEach(({ from, to }, i) => {
    const { points } = laid.edges[i];
    expect(at.get(to)!.y).toBeGreaterThan(at.get(from)!.y + 36);
    expect(onBorder(points[0], at.get(from)!)).toBe(true);
    expect(onBorder(points.at(-1)!, at.get(to)!)).toBe(true);
    points.slice(1).forEach((point, j) => expect(point.y).toBeGreaterThan(points[j].y));
  });
  for (const a of laid.nodes) {
    expect(a.x - 75).toBeGreaterThanOrEqual(0);
    expect(a.x + 75).toBeLessThanOrEqual(laid.width);
    expect(a.y + 18).toBeLessThanOrEqual(laid.height);
    for (const b of laid.nodes) {
      const apart = Math.abs(a.x - b.x) >= 150 || Math.abs(a.y - b.y) >= 36;
      expect(a === b || apart).toBe(true);
    }
  }
  // An edge that passes a layer passes beside its nodes.
  for (const { points } of laid.edges) {
    for (const { x, y } of points.slice(1, -1)) {
      for (const node of laid.nodes) {
        expect(Math.abs(node.x - x) >= 75 || Math.abs(node.y - y) >= 18).toBe(true);
      }
    }
  }
});

test('a chain is a straight line, and two that could cross do not', () => {
  const nodes = ['a', 'b', 'c', 'd'].map(id => ({ id, width: 150, height: 36 }));
  const chain = layOut(nodes, [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'c' },
    { from: 'c', to: 'd' }
  ]);
  expect(new Set(chain.nodes.map(({ x }) => x)).size).toBe(1);
  const [a, b, c, d] = layOut(nodes, [
    { from: 'a', to: 'd' },
    { from: 'b', to: 'c' }
  ]).nodes;
  expect(Math.sign(a.x - b.x)).toBe(Math.sign(d.x - c.x));
  expect(layOut([], [])).toEqual({ width: 0, height: 0, nodes: [], edges: [] });
});

// ---- The kernel behind a widget ------------------------------------------------------------------

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function model() {
  const listeners: ((answer: unknown) => void)[] = [];
  return {
    sent: [] as Record<string, unknown>[],
    get: () => undefined,
    on: (_: string, listener: (answer: unknown) => void) => listeners.push(listener),
    off: (_: string, listener: (answer: unknown) => void) =>
      listeners.splice(listeners.indexOf(listener), 1),
    send(message: Record<string, unknown>) {
      this.sent.push(message);
    },
    answer: (answer: unknown) => listeners.forEach(listener => listener(answer))
  };
}

test('a kernel is there once it has answered; what it refuses is an error', async () => {
  const one = model();
  const found: boolean[] = [];
  const kernel = kernelOf(one, isThere => found.push(isThere));
  expect(one.sent[0].do).toBe('greet');
  expect(found).toEqual([]);
  one.answer({ request: one.sent[0].request, ok: true, text: '' });
  expect(found).toEqual([true]);
  const done = kernel.ask({ do: 'pin' });
  const refused = kernel.ask({ do: 'evict' });
  one.answer({ request: one.sent[2].request, ok: false, text: 'No.' });
  one.answer({ request: one.sent[1].request, ok: true, text: 'Yes.' });
  await expect(done).resolves.toBe('Yes.');
  await expect(refused).rejects.toThrow('No.');
  kernel.dispose();
});

test('a kernel that is silent is not there, until it answers late', async () => {
  const one = model();
  const found: boolean[] = [];
  const kernel = kernelOf(one, isThere => found.push(isThere));
  one.answer({ request: one.sent[0].request, ok: true, text: '' });
  const asked = kernel.ask({ do: 'pin' });
  const silent = expect(asked).rejects.toThrow('The kernel is not responding.');
  vi.advanceTimersByTime(60_000);
  await silent;
  expect(found).toEqual([true, false]);
  one.answer({ request: one.sent[1].request, ok: true, text: '' });
  expect(found).toEqual([true, false, true]);
  // Another view of the same model has asked, or somebody else.
  one.answer({ request: 'other-1', ok: true, text: '' });
  one.answer(null);
  kernel.dispose();
});

test('a closed comm is no kernel', async () => {
  const one = model();
  const found: boolean[] = [];
  const kernel = kernelOf(one, isThere => found.push(isThere));
  one.answer({ request: one.sent[0].request, ok: true, text: '' });
  one.send = () => {
    throw new Error('closed');
  };
  await expect(kernel.ask({ do: 'pin' })).rejects.toThrow('The kernel is not responding.');
  expect(found).toEqual([true, false]);
  kernel.dispose();
});
