"""Demand for offers, the use of each offer, and reservations on agents."""
