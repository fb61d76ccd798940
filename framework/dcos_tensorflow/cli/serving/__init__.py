"""A scheduler of this machine: what it is given, and its life in the fore- or the background."""
