"""Both ends of a conversation with a master: scripted, recorded, bare."""
