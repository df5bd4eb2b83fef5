/** Where the nodes of a graph stand: a worker finds out, which starts with the first graph. */

import type { GraphEdge, GraphNode, Layout } from '../views/layout';
import type { LayoutReply, LayoutRequest } from './layout.worker';

let worker: Worker | null = null;
let requests = 0;
const waiting = new Map<number, { resolve(layout: Layout): void; reject(error: Error): void }>();

export function layOut(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Promise<Layout> {
  worker ??= start();
  const request = ++requests;
  worker.postMessage({ request, nodes, edges } satisfies LayoutRequest);
  return new Promise((resolve, reject) => waiting.set(request, { resolve, reject }));
}

function start(): Worker {
  const started = new Worker(new URL('./layout.worker.js', import.meta.url));
  started.onmessage = ({ data }: MessageEvent<LayoutReply>) => {
    waiting.get(data.request)?.resolve(data);
    waiting.delete(data.request);
  };
  started.onerror = event => {
    // A graph that cannot be laid out ends the worker; the next graph gets another.
    worker = null;
    for (const { reject } of waiting.values()) {
      reject(new Error(event.message));
    }
    waiting.clear();
  };
  return started;
}
