"""`python -m redline` is the `redline` command."""

from redline.cli import main

if __name__ == "__main__":
    main()
