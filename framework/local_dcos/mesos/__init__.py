"""Mesos as Admin Router shows it: master, agents, logs and what a node is doing."""
