"""Aggregate: one event per group, when the group is complete."""
