"""Joins with the last rows of each key."""
