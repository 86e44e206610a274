"""Files on disk: where they are, fetched, derived and verified before anything uses them. Knows no engine."""
