"""Where machines come from: EC2, or an operator's own command.

Made and called by the loop that buys; each is a ``capacity.provider.Provider``. They carry out
orders, and store nothing: they read their machines from the cloud or the script. None imports
another, so that a service needs the libraries of its own provider alone.
"""
