"""MultiJoin: several inputs on one key, at once."""
