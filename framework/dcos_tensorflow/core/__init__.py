"""The pure core: it decides, and does nothing else.

No I/O, no threads, no clock, no randomness, no import of any other room. Events come in, a
:class:`~dcos_tensorflow.core.step.Decision` comes out: the new state, the writes, the actions, and
one sentence of why. The one door is :func:`dcos_tensorflow.core.step.step`.
"""
