/**
 * Where the nodes of a graph stand, in layers from above to below, as Sugiyama, Tagawa and Toda drew
 * it ("Methods for visual understanding of hierarchical system structures", 1981): each node below
 * all that it reads, the order within a layer such that few edges cross, and the places such that
 * edges run straight down.
 *
 * For the 150 nodes that are drawn at a time, which take 10 to 25 ms.
 */

const LAYOUT_GAP = { across: 18, down: 28, margin: 8 };
/** How wide an edge is that passes through a layer, and how much straighter it is kept than a node. */
const LAYOUT_PASS = { width: 8, weight: 4 };
const LAYOUT_SWEEPS = 12;

/**
 * @typedef {import("./program_graph.js").ProgramNode} LayoutNode
 * @typedef {{
 *   width: number, height: number, weight: number, layer: number, x: number, y: number, at: number,
 *   above: LayoutPlace[], below: LayoutPlace[]
 * }} LayoutPlace A node, or where an edge passes through a layer; `at` is its place in the order.
 */

/**
 * @param {LayoutNode[]} nodes
 * @param {{from: string, to: string}[]} edges from a node to one that stands later in `nodes`.
 * @returns {import("./program_graph.js").ProgramLayout}
 */
export function programLayout(nodes, edges) {
  /** @type {Map<string, LayoutPlace>} */
  const places = new Map(nodes.map(({ id, width, height }) => [id, layoutPlace(width, height, 1)]));
  const ends = edges.map(({ from, to }) => ({ from, to, place: layoutOf(places, from), end: layoutOf(places, to) }));
  layoutLayers(nodes.map(({ id }) => layoutOf(places, id)), ends);
  const layers = layoutFill([...places.values()]);
  const ways = layoutWays(layers, ends);
  layoutOrder(layers);
  layoutAcross(layers);
  const { width, height } = layoutDown(layers);
  return {
    width,
    height,
    nodes: nodes.map(({ id }) => ({ id, x: layoutOf(places, id).x, y: layoutOf(places, id).y })),
    edges: ends.map(({ place, end }, i) => ({
      points: [
        { x: place.x, y: place.y + place.height / 2 },
        ...ways[i].map(({ x, y }) => ({ x, y })),
        { x: end.x, y: end.y - end.height / 2 },
      ],
    })),
  };
}

/** @param {Map<string, LayoutPlace>} places @param {string} id */
function layoutOf(places, id) {
  return /** @type {LayoutPlace} */ (places.get(id));
}

/**
 * @param {number} width
 * @param {number} height
 * @param {number} weight
 * @param {number} layer
 * @returns {LayoutPlace}
 */
function layoutPlace(width, height, weight, layer = 0) {
  return { width, height, weight, layer, x: 0, y: 0, at: 0, above: [], below: [] };
}

/**
 * Each node one layer below the lowest that it reads; what reads nothing, just above its readers.
 *
 * @param {LayoutPlace[]} places in the order of the program.
 * @param {{place: LayoutPlace, end: LayoutPlace}[]} ends
 */
function layoutLayers(places, ends) {
  const reads = new Map(places.map((place) => [place, /** @type {LayoutPlace[]} */ ([])]));
  const readers = new Map(places.map((place) => [place, /** @type {LayoutPlace[]} */ ([])]));
  for (const { place, end } of ends) {
    reads.get(end)?.push(place);
    readers.get(place)?.push(end);
  }
  for (const place of places) {
    place.layer = Math.max(0, ...(reads.get(place) ?? []).map((one) => one.layer + 1));
  }
  for (const place of places) {
    const after = readers.get(place) ?? [];
    if (!reads.get(place)?.length && after.length) {
      place.layer = Math.min(...after.map((one) => one.layer)) - 1;
    }
  }
}

/** @param {LayoutPlace[]} places */
function layoutFill(places) {
  /** @type {LayoutPlace[][]} */
  const layers = [];
  for (const place of places) {
    (layers[place.layer] ??= []).push(place);
  }
  return Array.from(layers, (layer) => layer ?? []);
}

/**
 * Through which places each edge passes; edges from one node go together as far as they can.
 *
 * @param {LayoutPlace[][]} layers is added to.
 * @param {{place: LayoutPlace, end: LayoutPlace}[]} ends
 */
function layoutWays(layers, ends) {
  /** @type {Map<LayoutPlace, LayoutPlace[]>} */
  const chains = new Map();
  return ends.map(({ place, end }) => {
    const chain = chains.get(place) ?? [];
    chains.set(place, chain);
    while (place.layer + chain.length + 1 < end.layer) {
      const pass = layoutPlace(LAYOUT_PASS.width, 0, LAYOUT_PASS.weight, place.layer + chain.length + 1);
      layoutJoin(chain.at(-1) ?? place, pass);
      layers[pass.layer].push(pass);
      chain.push(pass);
    }
    const way = chain.slice(0, end.layer - place.layer - 1);
    layoutJoin(way.at(-1) ?? place, end);
    return way;
  });
}

/** @param {LayoutPlace} above @param {LayoutPlace} below */
function layoutJoin(above, below) {
  above.below.push(below);
  below.above.push(above);
}

/**
 * Order each layer by the middles of its neighbours, downwards and upwards, and keep the best.
 *
 * @param {LayoutPlace[][]} layers
 */
function layoutOrder(layers) {
  const number = (/** @type {LayoutPlace[]} */ layer) => layer.forEach((place, i) => (place.at = i));
  layers.forEach(number);
  let best = layers.map((layer) => [...layer]);
  let fewest = layoutCrossings(layers);
  for (let sweep = 0; sweep < LAYOUT_SWEEPS && fewest > 0; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const middles = new Map(
        layer.map((place) => {
          const near = isDown ? place.above : place.below;
          const sum = near.reduce((total, one) => total + one.at, 0);
          return [place, near.length ? sum / near.length : place.at];
        }),
      );
      layer.sort((a, b) => (middles.get(a) ?? 0) - (middles.get(b) ?? 0) || a.at - b.at);
      number(layer);
    }
    const crossings = layoutCrossings(layers);
    if (crossings < fewest) {
      fewest = crossings;
      best = layers.map((layer) => [...layer]);
    }
  }
  best.forEach((layer, i) => {
    layers[i] = layer;
    number(layer);
  });
}

/** @param {LayoutPlace[][]} layers */
function layoutCrossings(layers) {
  let crossings = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((place) => place.below.map((one) => one.at).sort((a, b) => a - b));
    for (let i = 1; i < ends.length; i += 1) {
      for (let j = 0; j < i; j += 1) {
        crossings += ends[j] > ends[i] ? 1 : 0;
      }
    }
  }
  return crossings;
}

/**
 * Put each place over the middle of its neighbours, as near as the order and the widths allow.
 *
 * @param {LayoutPlace[][]} layers
 */
function layoutAcross(layers) {
  layers.forEach((layer) => layoutSettle(layer, layer.map(() => 0)));
  for (let sweep = 0; sweep < LAYOUT_SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const wanted = layer.map((place) => {
        const near = isDown ? place.above : place.below;
        return near.length ? near.reduce((total, one) => total + one.x, 0) / near.length : place.x;
      });
      layoutSettle(layer, wanted);
    }
  }
}

/**
 * The places nearest to those wanted, by weighted least squares, at which nothing overlaps: isotonic
 * regression of what remains when the widths are taken off, by pooling neighbours that collide.
 *
 * @param {LayoutPlace[]} layer
 * @param {number[]} wanted
 */
function layoutSettle(layer, wanted) {
  let offset = 0;
  const offsets = layer.map((place, i) => {
    const before = layer[i - 1];
    offset += before ? (before.width + place.width) / 2 + LAYOUT_GAP.across : 0;
    return offset;
  });
  /** @type {{sum: number, weight: number, size: number}[]} */
  const pools = [];
  layer.forEach(({ weight }, i) => {
    pools.push({ sum: weight * (wanted[i] - offsets[i]), weight, size: 1 });
    for (let last = pools.length - 1; last > 0; last -= 1) {
      const [a, b] = [pools[last - 1], pools[last]];
      if (a.sum / a.weight <= b.sum / b.weight) {
        break;
      }
      pools.splice(last - 1, 2, { sum: a.sum + b.sum, weight: a.weight + b.weight, size: a.size + b.size });
    }
  });
  let i = 0;
  for (const { sum, weight, size } of pools) {
    for (const end = i + size; i < end; i += 1) {
      layer[i].x = sum / weight + offsets[i];
    }
  }
}

/**
 * Give each layer its height, and move everything to where the drawing begins.
 *
 * @param {LayoutPlace[][]} layers
 * @returns {{width: number, height: number}}
 */
function layoutDown(layers) {
  const places = layers.flat();
  const left = Math.min(0, ...places.map(({ x, width }) => x - width / 2));
  let right = 0;
  let y = LAYOUT_GAP.margin - LAYOUT_GAP.down;
  for (const layer of layers) {
    y += LAYOUT_GAP.down;
    const height = Math.max(...layer.map((place) => place.height));
    for (const place of layer) {
      place.x += LAYOUT_GAP.margin - left;
      place.y = y + height / 2;
      right = Math.max(right, place.x + place.width / 2);
    }
    y += height;
  }
  return { width: right + LAYOUT_GAP.margin, height: Math.max(0, y) + LAYOUT_GAP.margin };
}
