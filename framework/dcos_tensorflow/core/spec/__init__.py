"""What is to run, as options make it: frozen values that nothing changes while it runs."""
