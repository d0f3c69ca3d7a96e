"""The command `opticoll`, which also runs as `python -m opticoll`."""

import sys


def run() -> int:
    """Runs the command line; handles interrupts even while modules are imported."""
    try:
        from opticoll.cli.main import main
    except KeyboardInterrupt:
        sys.stderr.write("opticoll: interrupted\n")
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(run())
