"""A unit of work in a slot: what its process finds of it, and what it leaves."""
