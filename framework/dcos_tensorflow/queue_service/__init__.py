"""The service of a queue: teams submit jobs, and each runs as a service of its own when it may.

``queue`` decides; this room keeps its records in the state store, reads the cluster from the
master, starts and ends the schedulers of jobs, and answers over HTTP. It places no task. When it
dies, nothing stops: the schedulers of admitted jobs go on, and the next process of the queue finds
them. ``dcos-tensorflow queue serve`` starts it (``process``).
"""
