"""Secrets on their way to tasks, and out of what tasks say."""
