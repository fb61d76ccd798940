"""Mesos as Admin Router shows it: master, agents, logs and the metrics of a node."""
