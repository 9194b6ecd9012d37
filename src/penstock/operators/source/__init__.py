"""Source: events from outside."""
