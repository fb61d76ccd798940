"""From options and code to a service that is served: prepared, started, kept, ended."""
