"""What is left of a service where no scheduler answers: its state, runs, last page and output.

Used by the verbs, by ``deploy`` before a start, and by the window. Nothing here asks a scheduler
but for what only it has, or places anything.
"""
