"""Batches: which piece of the input each shard is, and where what comes of it is written."""
