"""Several processes that compute together: who they are, and whether they run the same programs."""
