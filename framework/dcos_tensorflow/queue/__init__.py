"""The queue of teams that share a cluster: it says when a job runs and which one gives way.

Admission, not placement. The queue decides *when* a job may run and asks a running one to give
way. An admitted job is an ordinary service with a scheduler of its own, which places its tasks and
heals them. ``line.Queue`` is the one door: events in, a ``QueueDecision`` out. Pure: no I/O, no
clock, no randomness. Called by the service of a queue, by ``benchmarks/queue.py`` and by the
simulation in the tests.
"""
