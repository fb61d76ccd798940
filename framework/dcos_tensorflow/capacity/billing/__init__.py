"""The cost of machines, by use."""
