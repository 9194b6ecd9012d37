"""The tasks' side of an epoch: scan, flow, exchange, merge."""
