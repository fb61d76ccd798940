"""Many units in slots: how many slots there are, and what each works on."""
