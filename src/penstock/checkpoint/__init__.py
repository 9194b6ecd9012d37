"""Bytes that last: storage, runs of state, manifests, locks."""
