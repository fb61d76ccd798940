"""Jobs from Python: described by ``TensorFlow``, begun by its ``fit``, ``sweep`` and ``batch``, and
asked as a ``Job``.

It works by the same functions as the commands of the command line.
"""
