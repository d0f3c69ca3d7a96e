"""`python -m opticoll` is the command `opticoll`."""

import sys

from opticoll.main import main

if __name__ == "__main__":
    sys.exit(main())
