"""Agents to be left: which, why, and until when."""
