"""``dcos tensorflow``: the command that ``dcos package install tensorflow`` brings to a laptop.

The command tree of DC/OS services, asked of the scheduler through the cluster. Standard library
only, any Python from 3.8 on, packed as one file (``pack.build_plugin``): it runs on machines that
have nothing of ours, Linux or macOS. It imports nothing of the rest of this package.
"""
