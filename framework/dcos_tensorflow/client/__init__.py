"""A service as its clients know it: its address, its API's answers, its tasks' output."""
