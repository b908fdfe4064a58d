import sys

from armlet.cli import main

sys.exit(main())
