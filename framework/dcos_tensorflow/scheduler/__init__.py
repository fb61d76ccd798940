"""The daemon: one event loop that feeds the core and carries out what it decides."""
