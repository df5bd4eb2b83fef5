"""Integrals of samples: those of `scipy.integrate`."""

from perspex.numpy.calculus import trapezoid

__all__ = ["trapezoid"]
