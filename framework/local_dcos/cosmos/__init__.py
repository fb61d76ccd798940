"""Cosmos, the package manager: repositories, options, installing, updating, uninstalling."""
