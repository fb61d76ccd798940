"""The life of the user's process: what starts, watches and ends it."""
