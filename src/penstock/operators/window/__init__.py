"""Window: labels each event with the windows it belongs to."""
