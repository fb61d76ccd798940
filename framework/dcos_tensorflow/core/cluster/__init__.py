"""What a task is told: the ClusterSpec, its addresses, and the launch or order that carries it."""
