"""The callers of the API and their rights."""
