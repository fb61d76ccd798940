"""Sweeps: which parameters the next trial has, which trials are stopped, which one is the best."""
