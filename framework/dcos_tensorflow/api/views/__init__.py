"""The views of the API: pure functions from the state to JSON-ready values, by subject."""
