"""Join: two inputs on equal keys, within a band of time."""
