"""The daemon: one event loop that feeds the core and carries out its decisions.

``Scheduler`` (scheduler.py) wires the rooms below it together; ``EventLoop`` (event_loop.py) is the
only thread that owns the state.
"""
