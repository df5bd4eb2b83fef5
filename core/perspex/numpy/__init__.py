"""The array namespace: NumPy's functions on Perspex arrays."""

from perspex.base.public import publish as _publish
from perspex.numpy import fft as fft
from perspex.numpy import linalg as linalg
from perspex.numpy.arithmetic import *
from perspex.numpy.axes import *
from perspex.numpy.bits import *
from perspex.numpy.calculus import *
from perspex.numpy.concatenator import *
from perspex.numpy.convolution import *
from perspex.numpy.correlation import *
from perspex.numpy.creation import *
from perspex.numpy.editing import *
from perspex.numpy.einsum import *
from perspex.numpy.files import *
from perspex.numpy.fitting import *
from perspex.numpy.floating import *
from perspex.numpy.grids import *
from perspex.numpy.histograms import *
from perspex.numpy.indexing.at import *
from perspex.numpy.indexing.put import *
from perspex.numpy.indexing.read import *
from perspex.numpy.indexing.take import *
from perspex.numpy.inspection import __array_api_version__ as __array_api_version__
from perspex.numpy.inspection import __array_namespace_info__ as __array_namespace_info__
from perspex.numpy.joining import *
from perspex.numpy.logic import *
from perspex.numpy.mapping import *
from perspex.numpy.padding import *
from perspex.numpy.polynomials import *
from perspex.numpy.products import *
from perspex.numpy.quantiles import *
from perspex.numpy.ranges import *
from perspex.numpy.reductions import *
from perspex.numpy.scalars import *
from perspex.numpy.selection import *
from perspex.numpy.sets import *
from perspex.numpy.shaping import *
from perspex.numpy.sorting import *
from perspex.numpy.special import *
from perspex.numpy.statistics import *
from perspex.numpy.transcendental import *
from perspex.numpy.triangles import *
from perspex.numpy.turning import *
from perspex.numpy.ufuncs import *
from perspex.runtime.exchange import from_dlpack as from_dlpack

_publish(globals(), vars(linalg))
