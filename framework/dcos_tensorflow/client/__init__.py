"""A service as its clients know it: where it is, what its API answers, what its tasks print."""
