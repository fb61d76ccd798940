"""What machines have cost, and for what."""
