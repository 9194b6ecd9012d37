"""Spark SQL as Penstock understands it: read, typed as Spark types it, and written for DuckDB.

Nothing is available that is not in a table here, and everything in the tables is compared with Spark by a test.
"""
