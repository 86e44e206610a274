"""`python -m redline.fake`: the fake engine without the rest of redline, for the fastest start."""

import sys

from redline.fake.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
