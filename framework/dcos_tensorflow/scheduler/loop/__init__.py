"""The event loop: its inbox, its turns, their recording and tracing, and the clock.

``scheduler.leading`` makes it while this scheduler leads. It feeds ``core.step`` and carries out
the decisions; it never decides, and keeps nothing that the core does not know.
"""
