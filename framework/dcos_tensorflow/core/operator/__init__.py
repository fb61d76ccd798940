"""Requests to a running service: verbs for plans and pods, other options, an uninstall."""
