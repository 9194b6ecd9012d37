"""Kernels: pure functions on Arrow tables. No Spark, no clock, no unseeded randomness."""
