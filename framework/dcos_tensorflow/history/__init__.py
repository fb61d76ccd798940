"""The kept history of a service's runs: curves, options, the end of each.

``curves`` collects the values of a run, ``keeper`` keeps them, on a thread of its own: in a
``folder``, with a copy in S3 by ``bucket``. ``picture`` draws runs over each other. The state store
holds nothing of it, and nothing here asks a scheduler.
"""
