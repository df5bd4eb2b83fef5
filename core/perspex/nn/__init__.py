"""Functions of neural networks: activations, softmax and its kin, attention, initial weights."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from perspex.base.public import later as _later
from perspex.base.public import publish as _publish
from perspex.nn import initializers as initializers
from perspex.nn.activation import *
from perspex.nn.attention import *
from perspex.nn.normalization import *
from perspex.numpy import tanh as tanh

_publish(globals())

if _TYPE_CHECKING:
    from perspex.nn.scaled import *
else:
    # What few programs use is imported when it is.
    _LATER = dict.fromkeys(
        ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
        "perspex.nn.scaled",
    )
    __getattr__, __dir__ = _later(globals(), _LATER)
