"""The service as options describe it: frozen values that nothing changes while it runs."""
