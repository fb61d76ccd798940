"""The commands of ``dcos-tensorflow``, each in the module of its name or of its kind.

``main`` imports all of them. So a module imports what its flags need; what its work needs beyond
that, where it is large, is imported when it runs.
"""
