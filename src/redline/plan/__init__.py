"""Bytes: what a tier needs on a rig, whether it fits, and how much context there is room for. Knows no process."""
