"""Where machines come from: EC2, or an operator's own command.

Made and called by the loop that buys; each is a ``capacity.provider.Provider``. They carry out what
was decided, and keep nothing: what there is, they read from where it comes from. None imports
another, so that a service needs the libraries of its own provider alone.
"""
