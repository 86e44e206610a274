"""redline serves a large language model on the hardware you have, in named tiers, and proves what each tier does."""

__version__ = "0.1.0"
