"""Select: keeps the events for which a predicate is true."""
