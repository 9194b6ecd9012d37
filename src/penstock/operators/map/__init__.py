"""Map: a user's function on Arrow tables."""
