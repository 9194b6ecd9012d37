"""The parts of the join benchmark: workloads, contestants, and the check that they agree."""
