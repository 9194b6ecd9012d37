"""Top: the best events of each group."""
