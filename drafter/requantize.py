"""The Q4_0 target from the Q4_1 file: redline's own recipe, callable where redline is not installed."""

import sys
from pathlib import Path


def main() -> None:
    """Args: SOURCE TARGET."""
    from redline.artifacts.derive import requantize_q4_0

    requantize_q4_0(Path(sys.argv[1]), Path(sys.argv[2]), "target", lambda _: None)


if __name__ == "__main__":
    main()
