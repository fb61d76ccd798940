"""The ClusterSpec, its addresses, and the launch or order that carries it to a task."""
