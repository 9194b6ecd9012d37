"""Queries as chained method calls."""
