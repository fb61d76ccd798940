"""What the user asks for: the option models, their validation, and the ServiceSpec they become."""
