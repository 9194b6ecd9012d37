"""What need not be read."""
