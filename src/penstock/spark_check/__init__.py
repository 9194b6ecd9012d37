"""The contract check of plain Spark queries."""
