"""The operators: one room each, with all that is known of it."""
