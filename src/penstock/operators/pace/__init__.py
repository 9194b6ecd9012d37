"""Pace: a union whose inputs may not fall behind each other."""
