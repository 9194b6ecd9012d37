"""Walks over whole plans, before and while they run: punctuation, contracts, bounds, feedback."""
