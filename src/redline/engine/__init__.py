"""Engines as data and pure functions: a tier into a launch plan, log lines into stages, counters into numbers.

Knows what an engine's command line and output look like. Starts nothing and prints nothing.
"""
