"""The commands of ``dcos-tensorflow``, each in the module of its name.

A module is imported when its command is called, when its help is asked for, and when its flags are
completed. So it imports what its flags need; what its work needs beyond that is imported when it
runs. Stories of several steps, ``run`` and ``scheduler``, are told in ``serving``.
"""
