/**
 * What the panel shares with the widgets: plain modules that ship in the Python package.
 */

export {
  append,
  count,
  cut,
  duration,
  el,
  replace,
  said,
  size,
  stylesheet,
  svg
} from '../../magics/perspex_magics/widgets/static/dom.js';
export { LOOK } from '../../magics/perspex_magics/widgets/static/look.js';
export { cacheView } from '../../magics/perspex_magics/widgets/static/cache.js';
export { programView } from '../../magics/perspex_magics/widgets/static/program.js';
