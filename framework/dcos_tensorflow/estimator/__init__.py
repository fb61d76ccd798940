"""Jobs from Python: described by ``TensorFlow``, begun by its ``fit``, ``sweep`` and ``batch``, and
asked as a ``Job``.

What a command of the command line does is done here by the same functions of ``cli``.
"""
