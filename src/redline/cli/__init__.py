"""The command line: parse, call one operation, show its events. Knows no rule and measures nothing."""

from redline.cli.main import main

__all__ = ["main"]
