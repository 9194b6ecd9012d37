"""Sink: where results go."""
