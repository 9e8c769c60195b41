"""The program `minvel`, without Rust: `minvel fit my.csv`, or `python -m minvel fit my.csv`."""

import signal
import sys

from ._native import run


def main() -> None:
    """Run the program with the arguments of the command line and exit with its status."""
    # The program hears Ctrl-C itself; where it does not listen, Ctrl-C ends it, as it ends any program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run(["minvel", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
