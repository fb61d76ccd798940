"""Purchases of machines, their times and their cost: the pure half of capacity.

``planner`` turns waiting gangs into machines to buy, ``deadline`` says how many of a gang's
machines are spot ones now, ``experience`` keeps the behaviour of a market so far. ``ledger`` has
the purchases, and ``reconcile`` decides about them; ``bill`` reckons the cost of the machines whose
``usage`` is known. Pure: no I/O, no clock, no randomness. ``scheduler.machines.buying`` asks it,
``providers`` buy; ``docs/capacity.md`` has the rules and their sources.
"""
