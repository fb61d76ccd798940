"""Batches: the piece of the input of each shard, and the place of its output."""
