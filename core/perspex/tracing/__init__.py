"""How a call of a function becomes a program: primitives, traces, tracers, and their past."""
