"""Convolution, trends and spectra of signals, as in `scipy.signal`."""

from perspex.scipy.signal.convolving import *
from perspex.scipy.signal.spectra import *
from perspex.scipy.signal.trends import *
