"""Secrets on their way to tasks, and out of the words of tasks."""
