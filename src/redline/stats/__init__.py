"""Intervals, tests and trends over plain sequences of numbers. Knows nothing of where the numbers come from."""
