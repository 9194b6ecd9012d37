"""Runs plans on Spark: sources, exchange, state, epochs, sinks, recovery."""
