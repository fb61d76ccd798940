"""A Mesos agent: its registration, its containers, its updates. Pure, as the master is.

``machine`` has the processes that an agent asks for; ``cluster`` carries its messages.
"""
