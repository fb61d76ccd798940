"""What the user's process tells: its lines, its progress, its event files."""
