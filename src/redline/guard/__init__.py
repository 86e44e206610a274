"""Rules that refuse or warn before anything is touched. Knows facts and plans, not how to start anything."""
