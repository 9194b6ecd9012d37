"""Where users come in: the command line and the testing module."""
