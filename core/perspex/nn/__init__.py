"""Functions of neural networks: activations, softmax and its kin, attention, initial weights."""

from perspex.base.public import publish as _publish
from perspex.nn import initializers as initializers
from perspex.nn.activation import *
from perspex.nn.attention import *
from perspex.nn.normalization import *
from perspex.nn.scaled import *
from perspex.numpy import tanh as tanh

_publish(globals())
