"""What is wanted of the master, what becomes of each offer, and what is held on agents."""
