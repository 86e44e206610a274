"""Talking to a server: measured streams, control calls, the engine's own counters. Gives no verdicts."""
