"""HTTP: the servers of master and agents, and a scheduler's event stream. They decide nothing."""
