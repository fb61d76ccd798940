"""Doors through which input of strangers comes, and what tries them: ``python -m tests.fuzz``."""
