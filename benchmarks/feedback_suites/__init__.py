"""The parts of `benchmarks.feedback`: data, queries, processes, published numbers and the report."""
