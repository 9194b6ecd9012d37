"""Decisions between epochs, as pure functions of statistics."""
