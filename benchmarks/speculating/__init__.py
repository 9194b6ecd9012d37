"""The parts of `benchmarks.speculation`."""
