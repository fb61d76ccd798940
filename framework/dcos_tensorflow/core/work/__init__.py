"""Many units in slots: the number of slots, and the unit of each."""
