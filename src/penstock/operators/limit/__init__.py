"""Limit: the first events, and then the end."""
