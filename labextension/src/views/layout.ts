/** Where the nodes of a graph stand, in layers from above to below. */

import { Graph, layout } from '@dagrejs/dagre';

export type Point = { x: number; y: number };
export type GraphNode = { id: string; width: number; height: number };
export type GraphEdge = { from: string; to: string };

/** Points of nodes are their centres; edges stand in the order in which they were given. */
export type Layout = {
  width: number;
  height: number;
  nodes: (Point & { id: string })[];
  edges: { points: Point[] }[];
};

/** Whatever lays graphs out, in the page or in a worker. */
export type LayOut = (
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[]
) => Layout | Promise<Layout>;

/** Lay a graph out at once; a graph of 150 nodes takes some tens of milliseconds. */
export function layOut(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Layout {
  if (!nodes.length) {
    return { width: 0, height: 0, nodes: [], edges: [] };
  }
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 18, ranksep: 26, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) {
    graph.setNode(id, { width, height });
  }
  edges.forEach(({ from, to }, i) => graph.setEdge(from, to, {}, String(i)));
  layout(graph);
  // Dagre writes what it found into the labels, whose types say nothing of it.
  const { width = 0, height = 0 } = graph.graph() as Partial<Layout>;
  const point = ({ x, y }: Point): Point => ({ x, y });
  return {
    width,
    height,
    nodes: nodes.map(({ id }) => ({ id, ...point(graph.node(id) as Point) })),
    edges: edges.map(({ from, to }, i) => {
      const { points } = graph.edge(from, to, String(i)) as { points: Point[] };
      return { points: points.map(point) };
    })
  };
}
