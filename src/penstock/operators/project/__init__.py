"""Project: renames, drops and computes attributes."""
