/**
 * Where the nodes of a graph stand: asked of a worker, which starts with the first graph.
 */

type Point = { x: number; y: number };

export type LayoutRequest = {
  request: number;
  nodes: { id: string; width: number; height: number }[];
  edges: { from: string; to: string }[];
};

export type Laid = {
  width: number;
  height: number;
  /** Centres. */
  nodes: (Point & { id: string })[];
  edges: { points: Point[] }[];
};

let worker: Worker | null = null;
let requests = 0;
const waiting = new Map<number, { resolve(laid: Laid): void; reject(error: Error): void }>();

export function layout(
  nodes: LayoutRequest['nodes'],
  edges: LayoutRequest['edges']
): Promise<Laid> {
  worker ??= start();
  const request = ++requests;
  worker.postMessage({ request, nodes, edges } satisfies LayoutRequest);
  return new Promise((resolve, reject) => waiting.set(request, { resolve, reject }));
}

function start(): Worker {
  const started = new Worker(new URL('./layout.worker.js', import.meta.url));
  started.onmessage = ({ data }: MessageEvent<Laid & { request: number }>) => {
    waiting.get(data.request)?.resolve(data);
    waiting.delete(data.request);
  };
  started.onerror = event => {
    // A graph that cannot be laid out ends the worker; the next one gets another.
    worker = null;
    for (const { reject } of waiting.values()) {
      reject(new Error(event.message || 'The graph could not be laid out.'));
    }
    waiting.clear();
  };
  return started;
}
