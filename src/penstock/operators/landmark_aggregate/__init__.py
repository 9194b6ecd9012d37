"""Aggregates over windows that all begin at the origin."""
