"""All elementwise operations: the rows of `arithmetic` and of `transcendental`."""

# ruff: noqa: F403

from perspex.ops.arithmetic import *
from perspex.ops.transcendental import *
