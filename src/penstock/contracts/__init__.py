"""Static analysis of plans: is state bounded, does every result appear."""
