/**
 * Lays graphs out, apart from the page, which stays smooth meanwhile.
 */

import { Graph, layout } from '@dagrejs/dagre';
import type { Laid, LayoutRequest } from './layout';

const scope = self as unknown as {
  onmessage: (event: MessageEvent<LayoutRequest>) => void;
  postMessage(message: Laid & { request: number }): void;
};

scope.onmessage = ({ data: { request, nodes, edges } }) => {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 18, ranksep: 26, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) {
    graph.setNode(id, { width, height });
  }
  edges.forEach(({ from, to }, i) => graph.setEdge(from, to, {}, String(i)));
  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  scope.postMessage({
    request,
    width,
    height,
    nodes: nodes.map(({ id }) => ({ id, x: graph.node(id).x, y: graph.node(id).y })),
    edges: edges.map(({ from, to }, i) => ({
      points: pointsOf(graph.edge(from, to, String(i)))
    }))
  });
};

/** Dagre writes the bends of an edge into its label. */
function pointsOf(label: unknown): { x: number; y: number }[] {
  const { points } = label as { points: { x: number; y: number }[] };
  return points.map(({ x, y }) => ({ x, y }));
}
