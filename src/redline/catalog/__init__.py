"""What is known about models, artifacts, drafters, engines, tiers and hazards, with where each fact comes from.

Resolves a slug into a `ResolvedTier`. Knows nothing of this machine or of processes.
"""
