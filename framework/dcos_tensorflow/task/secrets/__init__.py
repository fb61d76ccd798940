"""Secrets of a task: as files that its user alone reads, and as Kerberos tickets."""
