"""What sources promise, and which events break it."""
