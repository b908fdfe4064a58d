"""`python -m armlet` is the command `armlet`."""

import sys

from armlet.cli import main

if __name__ == "__main__":
    sys.exit(main())
