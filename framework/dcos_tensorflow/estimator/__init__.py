"""Jobs from Python: described by ``TensorFlow``, begun by ``fit``, and asked as a ``Job``.

What a command of the command line does is done here by the same functions of ``cli``.
"""
