"""A cluster that a notebook drives: engines of ipyparallel that compute as one program."""
