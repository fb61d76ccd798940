"""Which machines are bought, and when, and what they have cost: the pure half of capacity.

``planner`` turns what waits into machines to buy, ``deadline`` says how many of a gang's machines
are spot ones now, ``experience`` keeps what a market has shown so far. ``ledger`` is what was
bought, and ``reconcile`` says what to do about it; ``bill`` reckons what the machines have cost
whose ``usage`` is known. Pure: no I/O, no clock, no randomness. ``scheduler.machines.buying`` asks
it, ``providers`` buy; ``docs/capacity.md`` has the rules and their sources.
"""
