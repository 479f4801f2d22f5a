"""`python -m ragforge`."""

import sys

from ragforge.cli import main

if __name__ == "__main__":
    sys.exit(main())
