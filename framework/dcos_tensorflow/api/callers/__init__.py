"""Who may ask the API for what."""
