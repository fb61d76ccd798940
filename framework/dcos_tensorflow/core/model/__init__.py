"""The nouns: what a service, a gang, a task, an offer, an event and an action are.

Frozen values and the tables of their allowed transitions. Nothing here decides.
"""
