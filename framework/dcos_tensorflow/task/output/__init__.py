"""The words of the user's process: its lines, its progress, its event files."""
