"""How random keys are used, and which are used twice."""
