"""The meaning of an end of the user's process: its class, one sentence, and the remedy."""
