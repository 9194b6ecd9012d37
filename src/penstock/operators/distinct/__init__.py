"""Distinct: each event once."""
