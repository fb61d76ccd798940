"""Stand-in for the distribution ``http-parser``: only what pymesos imports of it."""

__version__ = "0.9.0+pure1"
