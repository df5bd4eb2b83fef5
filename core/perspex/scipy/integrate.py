"""`scipy.integrate` on arrays: the rule that needs no function."""

from perspex.numpy.calculus import trapezoid as trapezoid
