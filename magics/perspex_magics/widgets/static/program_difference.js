/**
 * Which lines of a listing are new and which are gone, compared with the listing before.
 *
 * The names of variables count for nothing, because one equation more renames all that follow.
 */

/** So many lines may differ; beyond, everything between the first and the last of them does. */
const PROGRAM_MOST_EDITS = 1000;

/**
 * @typedef {"source" | "jaxpr" | "stablehlo" | "hlo"} ProgramForm
 * @typedef {{kind: "same" | "new" | "gone", index: number}} ProgramEdit `index` is a line of the
 *   listing before if it is gone, else of the listing now.
 */

/**
 * A line without the names that the printer or the compiler gave.
 *
 * @param {ProgramForm} form
 * @param {string} text
 * @returns {string}
 */
export function programNameless(form, text) {
  if (form === "source") {
    return text;
  }
  if (form === "jaxpr") {
    return text
      .replace(/(?:\b[a-z]+|_):/g, ":")
      .replace(/( = [\w-]+(?:\[[^\]]*\])?|^ *\])((?: [^ ]+)*)$/, (_, head, operands) => {
        const literals = operands.split(" ").filter((/** @type {string} */ word) => word.includes(":"));
        return [head, ...literals].join(" ");
      });
  }
  return text.replace(/%[\w.-]+(?:[:#]\d+)?/g, "%");
}

/**
 * What became of the lines, in the order of the listing now.
 *
 * @param {string[]} before
 * @param {string[]} now
 * @returns {ProgramEdit[]}
 */
export function programEdits(before, now) {
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
  /** @type {ProgramEdit[]} */
  const edits = [];
  for (let i = 0; i < start; i += 1) {
    edits.push({ kind: "same", index: i });
  }
  edits.push(...programMiddle(before.slice(start, endBefore), now.slice(start, endNow), start));
  for (let i = endNow; i < now.length; i += 1) {
    edits.push({ kind: "same", index: i });
  }
  return edits;
}

/**
 * The shortest list of edits, after Myers, "An O(ND) difference algorithm" (1986).
 *
 * @param {string[]} a
 * @param {string[]} b
 * @param {number} offset added to all indices.
 * @returns {ProgramEdit[]}
 */
function programMiddle(a, b, offset) {
  const trail = programTrail(a, b);
  /** @type {ProgramEdit[]} */
  const edits = [];
  let x = a.length;
  let y = b.length;
  if (trail === null) {
    a.forEach((_, i) => edits.push({ kind: "gone", index: offset + i }));
    b.forEach((_, i) => edits.push({ kind: "new", index: offset + i }));
    return edits;
  }
  for (let d = trail.length - 1; d > 0; d -= 1) {
    const furthest = trail[d - 1];
    const k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const fromX = furthest.get(from) ?? 0;
    const fromY = fromX - from;
    while (x > (down ? fromX : fromX + 1) || (down && y > fromY + 1)) {
      x -= 1;
      y -= 1;
      edits.push({ kind: "same", index: offset + y });
    }
    if (down) {
      y -= 1;
      edits.push({ kind: "new", index: offset + y });
    } else {
      x -= 1;
      edits.push({ kind: "gone", index: offset + x });
    }
  }
  while (x > 0 && y > 0) {
    x -= 1;
    y -= 1;
    edits.push({ kind: "same", index: offset + y });
  }
  return edits.reverse();
}

/**
 * How far each diagonal reaches after each number of edits; `null` if there are too many.
 *
 * @param {string[]} a
 * @param {string[]} b
 * @returns {Map<number, number>[] | null}
 */
function programTrail(a, b) {
  /** @type {Map<number, number>[]} */
  const trail = [];
  /** @type {Map<number, number>} */
  let reached = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, PROGRAM_MOST_EDITS); d += 1) {
    /** @type {Map<number, number>} */
    const now = new Map();
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
      let x = down ? (reached.get(k + 1) ?? 0) : (reached.get(k - 1) ?? 0) + 1;
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
