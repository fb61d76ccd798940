"""The kept parts of a service where no scheduler answers: state, runs, last page and output.

Used by the verbs, by ``deploy`` before a start, and by the window. Nothing here asks a scheduler
but for parts that only it has, or places anything.
"""
