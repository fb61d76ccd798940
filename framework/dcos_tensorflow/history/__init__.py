"""What is kept of a service's runs when they are over: curves, options, how each ended.

``curves`` collects what a run tells, ``keeper`` keeps it, on a thread of its own: in a ``folder``,
with a copy in S3 by ``bucket``. ``picture`` draws runs over each other. The state store holds
nothing of it, and nothing here asks a scheduler.
"""
