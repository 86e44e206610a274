"""The first characters of a prompt, which no other prompt begins with. Knows nothing of caches.

A prefix cache reuses whatever stands before the first difference, so a difference must come first of all: rungs of a
ladder that shared their beginning read 37 % faster than they were (club-3090#1017).
"""

import random


def salt(seed: str) -> str:
    """Return sixteen characters that the seed fixes, new ones for every seed, ending a line of their own."""
    generator = random.Random(f"salt/{seed}")
    return "".join(generator.choices("abcdefghijkmnpqrstuvwxyz23456789", k=16)) + "\n"


def salted(seed: str, text: str) -> str:
    """Return a text that begins with the seed's salt."""
    return salt(seed) + text
