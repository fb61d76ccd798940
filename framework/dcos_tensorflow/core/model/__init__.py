"""The nouns: service, gang, task, offer, event and action.

Frozen values and the tables of their allowed transitions. Nothing here decides.
"""
