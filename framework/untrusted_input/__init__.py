"""Input that others make, read and answered so that it does no harm: shared by all packages here.

JSON and patterns, archives and trees of files, processes that a job leaves, requests of browsers
and of other clients: each module handles one kind. The service, the embedded Mesos and the local
DC/OS all get such input, so the defence stands once. Nothing here knows the meaning of the input,
and nothing here imports any of the three.

``archives``, ``process_table``, ``shield`` and ``trees`` come with the task runner, too: standard
library, any Python from 3.8.
"""
