"""The Mesos master. What schedulers, operators and agents say goes in, effects come out. Pure.

``scheduler_calls`` and ``operator_calls`` are its doors; ``master`` has its clock and hears the
agents. It starts nothing and sends nothing: ``cluster`` carries what it says.
"""
