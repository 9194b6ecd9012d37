"""Event-at-a-time versions of the operators, written for clarity: the oracle of the tests."""
