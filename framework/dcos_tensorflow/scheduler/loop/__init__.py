"""The event loop: what waits, one turn at a time, what is recorded and traced of it, and the clock.

``scheduler.leading`` makes it while this scheduler leads. It feeds ``core.step`` and carries out
what is decided; it never decides, and keeps nothing that the core does not know.
"""
