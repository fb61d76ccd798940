"""The life of the user's process: start, watch, end."""
