"""OrderBy: events in order."""
