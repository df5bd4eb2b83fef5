/** What stands in the place of the tabs while there is nothing to show in them. */

import type { State } from '../model/connection';
import { button, el, said } from '../views/dom';
import { trans } from '../views/trans';

export function adviceOn(state: State | undefined, retry: () => void): Node[] {
  const paragraph = (...parts: (Node | string)[]) => el('p', null, ...parts);
  const code = (text: string) => el('code', null, text);
  const again = () => button('pspx-button', retry, trans.__('Try again'));
  switch (state?.is) {
    case undefined:
      return [paragraph(trans.__('Open a notebook to see what happens in its kernel.'))];
    case 'unasked':
    case 'connecting':
      return [paragraph(trans.__('Waiting for the kernel...'))];
    case 'live':
      return [];
    case 'absent':
      return [
        paragraph(
          trans.__('Perspex is not loaded in this kernel. Run this in a cell:'),
          ' ',
          code('%load_ext perspex')
        ),
        paragraph(trans.__('If that fails, install it first:'), ' ', code('pip install perspex')),
        again()
      ];
    case 'foreign':
      return [
        paragraph(
          trans.__('Perspex needs a Python kernel. The language of this kernel is:'),
          ' ',
          said(state.language, 40)
        )
      ];
    case 'version':
      return [
        paragraph(
          trans.__(
            'The kernel has Perspex %1, which speaks another version of the protocol (%2). Install the same Perspex for the server and the kernel, and reload the page.',
            state.perspex,
            state.theirs
          )
        )
      ];
    case 'closed':
      return [
        paragraph(
          trans.__(
            'The kernel closed the connection. Another page may have taken the place of this one.'
          )
        ),
        again()
      ];
    case 'elsewhere':
      return [
        paragraph(
          trans.__(
            'Another document of this page, such as a console, was opened first on this kernel and receives its messages. Close it and open the notebook again.'
          )
        )
      ];
    case 'dead':
      return [paragraph(trans.__('The kernel is dead. Restart it.'))];
  }
}
