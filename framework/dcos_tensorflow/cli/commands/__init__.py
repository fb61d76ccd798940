"""The commands of ``dcos-tensorflow``, each in the module of its name or of its kind.

``main`` imports all of them. So a module imports the code of its flags; it imports large modules
when the command runs.
"""
