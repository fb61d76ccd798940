"""What an end of the user's process meant: its class, one sentence, and what to do about it."""
