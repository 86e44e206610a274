"""Runs that measure: which prompts, how often, in what order, and what they add up to. Knows no terminal."""
