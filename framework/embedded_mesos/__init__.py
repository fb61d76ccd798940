"""The embedded cluster: a Mesos-compatible master and agents on one machine.

``daemon`` starts and finds it, ``cluster`` is it. ``master`` and ``agent`` decide, ``machine`` runs
processes, ``wire`` speaks HTTP, ``dcos`` is the DC/OS around it.
"""
