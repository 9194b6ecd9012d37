"""More than the machine can take: what an answer is worth, what to give up first, and when.

Pure: numbers and patterns in, numbers and patterns out; no clock, no Spark, no chance but hashes of a seed.
"""
