"""Prompts, corpora and conversations, own-written and seeded. Knows no server and gives no verdicts."""
