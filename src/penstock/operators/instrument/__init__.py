"""Instrument: lets everything pass and issues feedback."""
