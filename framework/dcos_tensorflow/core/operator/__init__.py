"""What people ask of a running service: verbs for plans and pods, other options, an uninstall."""
