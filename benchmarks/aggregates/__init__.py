"""Count and sum per key and window: workload, contestants, and the check that they agree."""
