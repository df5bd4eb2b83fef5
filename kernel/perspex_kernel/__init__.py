"""The Perspex kernel: IPython's kernel with Perspex loaded and interrupts that always get through.

It stays thin on purpose. Whatever a plain IPython can have too (magics, displays) is in
`perspex_magics`; what is here needs to own the process.
"""

from perspex_kernel.app import PerspexKernelApp as PerspexKernelApp
from perspex_kernel.kernel import PerspexKernel as PerspexKernel
