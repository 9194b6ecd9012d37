"""Impute: an expensive function behind a queue."""
