"""Which machines are bought, and when: the pure half of capacity.

``planner`` turns what waits into machines to buy, ``deadline`` says how many of a gang's machines
are spot ones now, ``experience`` keeps what a market has shown so far. Pure: no I/O, no clock, no
randomness. Who buys, and how much a machine costs, is told from outside; ``docs/capacity.md`` has
the rules and their sources.
"""
