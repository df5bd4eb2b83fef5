/** Words of 32 bits as pictures, in which one sees how a hash spreads a difference. */

import { svg } from "./dom.js";

const BIT_WIDTH = 4;
const BIT_HEIGHT = 9;

/**
 * A strip with a filled cell for each bit that is one, the highest first.
 *
 * @param {string[]} words as eight hexadecimal digits each.
 * @returns {SVGElement}
 */
export function bitStrip(words) {
  const width = words.length * (32 * BIT_WIDTH + BIT_WIDTH) - BIT_WIDTH;
  let path = "";
  words.forEach((word, w) => {
    const value = parseInt(word, 16);
    for (let i = 0; i < 32; i += 1) {
      if ((value >>> (31 - i)) & 1) {
        const x = w * (33 * BIT_WIDTH) + i * BIT_WIDTH;
        path += `M${x} 0h${BIT_WIDTH - 1}v${BIT_HEIGHT}h${1 - BIT_WIDTH}z`;
      }
    }
  });
  return svg(
    "svg",
    // The digits beside it say the same.
    { width, height: BIT_HEIGHT, viewBox: `0 0 ${width} ${BIT_HEIGHT}`, "aria-hidden": "true" },
    svg("path", { d: path, fill: "currentColor" }),
  );
}
