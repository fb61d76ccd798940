"""What the API shows: pure functions from the state to JSON-ready values, a module per subject."""
