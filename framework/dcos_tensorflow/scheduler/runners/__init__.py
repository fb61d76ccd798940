"""Task runners and sandboxes, as the scheduler asks them."""
