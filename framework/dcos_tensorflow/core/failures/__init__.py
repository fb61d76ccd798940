"""What an end means: its cause, the incident it belongs to, and what that costs."""
