"""Mesos, runners and the scheduler under a virtual clock, for histories without processes."""
