/** Words of 32 bits as pictures, which show how a hash spreads a difference. */

import { svg } from '../dom';

const WIDTH = 4;
const HEIGHT = 9;

/** A strip with a filled cell for each bit that is one, the highest first; words are in hexadecimal. */
export function bitStrip(words: readonly string[]): SVGElement {
  const width = words.length * (32 * WIDTH + WIDTH) - WIDTH;
  let path = '';
  words.forEach((word, w) => {
    const value = parseInt(word, 16);
    for (let i = 0; i < 32; i += 1) {
      if ((value >>> (31 - i)) & 1) {
        const x = w * (33 * WIDTH) + i * WIDTH;
        path += `M${x} 0h${WIDTH - 1}v${HEIGHT}h${1 - WIDTH}z`;
      }
    }
  });
  return svg(
    'svg',
    // The digits beside it say the same.
    { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true' },
    svg('path', { d: path, fill: 'currentColor' })
  );
}
