"""Jobs that several tests run, and how to wait for them."""
