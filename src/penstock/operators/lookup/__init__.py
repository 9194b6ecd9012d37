"""Lookup: each event with the rows of a table that have its key."""
