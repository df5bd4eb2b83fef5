"""Convolution, trends and spectra of signals, as in `scipy.signal`."""

from perspex.base.public import publish as _publish
from perspex.scipy.signal.convolving import *
from perspex.scipy.signal.spectra import *
from perspex.scipy.signal.trends import *

_publish(globals())
