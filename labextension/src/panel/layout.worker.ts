/** Lays graphs out apart from the page, which stays smooth meanwhile. */

import { type GraphEdge, type GraphNode, type Layout, layOut } from '../views/layout';

export type LayoutRequest = {
  request: number;
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
};

export type LayoutReply = Layout & { request: number };

addEventListener('message', ({ data }: MessageEvent<LayoutRequest>) => {
  const { request, nodes, edges } = data;
  postMessage({ request, ...layOut(nodes, edges) } satisfies LayoutReply);
});
