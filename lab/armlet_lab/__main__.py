"""`python -m armlet_lab` is the command `armlet-lab`."""

import sys

from armlet_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
