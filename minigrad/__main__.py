"""`python -m minigrad`: the scoreboard, and the trace of a program."""

import sys

from .scoreboard.report import main

if __name__ == "__main__":
    sys.exit(main())
