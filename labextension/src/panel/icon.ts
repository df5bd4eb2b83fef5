/** The icon of the panel: a sheet that one sees through. */

import { LabIcon } from '@jupyterlab/ui-components';

export const perspexIcon = new LabIcon({
  name: 'perspex:panel',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="2" stroke-linejoin="round">
    <path class="jp-icon3" fill="#616161" stroke="none" fill-opacity="0.25" d="M9 3l12 4v14l-12-4z"/>
    <path stroke="#616161" d="M9 3l12 4v14l-12-4z"/>
    <path stroke="#616161" stroke-linecap="round" d="M3 9h3M3 13h3M12.500 10.500l5 1.700M12.500 14.500l5 1.700"/>
  </g>
</svg>`
});
