"""The meaning of a task's end: its cause, its incident, and the cost of that."""
