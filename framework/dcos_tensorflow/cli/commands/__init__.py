"""The commands' names, arguments and flags: what a command line is understood by.

What a command does is in the modules beside this folder. They are imported when it runs, and not
before: ``--help`` and a key press for completion must not wait for the whole program.
"""
