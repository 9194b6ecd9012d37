"""Benchmarks: one file per question. Each alternates its contestants in one run, prints a table and writes a plot."""
