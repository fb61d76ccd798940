"""The Mesos master. Messages of schedulers, operators and agents go in, effects come out. Pure.

``scheduler_calls`` and ``operator_calls`` are its doors; ``master`` has its clock and hears the
agents. It starts nothing and sends nothing: ``cluster`` carries its messages.
"""
