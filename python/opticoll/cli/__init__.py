"""The command line: `opticoll COMMAND --help` says what each command takes.

Results go to standard output, everything else to standard error. Exit codes: 0 as asked, 1 a plan
violates what it must keep, 2 bad input (one line says what, nothing is written), 70 a bug in
opticoll, 130 interrupted.

This is the only module that prints. Commands return text; `main` prints it when all is done, so
that a failure leaves nothing behind on standard output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from opticoll import errors
from opticoll.cli.commands import Answer, app

__all__ = ["app", "main"]

# What helps after an error of a kind, where the message itself does not say it all.
HINTS: dict[type[errors.OpticollError], str] = {
    errors.AlgorithmError: "see `opticoll list algorithms`",
    errors.CollectiveError: "see `opticoll list collectives`",
    errors.FabricError: "see `opticoll list fabrics`",
    errors.SimulationError: "see `opticoll list simulators` and `opticoll list policies`",
    errors.WavelengthError: "see `opticoll list wavelengths`",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; `argv` are the arguments after `opticoll`."""
    try:
        answer = app(argv, exit_on_error=False, print_error=False)
        if not isinstance(answer, Answer):
            return 0
        for note in answer.notes:
            print(f"opticoll: {note}", file=sys.stderr)
        print(answer.text, flush=True)
        return answer.code
    except BrokenPipeError:
        # The reader has seen enough (`| head`); Python must not try to flush again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CycloptsError as error:
        command = " ".join(error.command_chain or ())
        return refuse(str(error), f"see `opticoll {command} --help`".replace("  ", " "))
    except errors.OpticollError as error:
        return refuse(str(error), HINTS.get(type(error)))
    except MemoryError:
        return refuse("there is not enough memory for this", "try fewer ranks")
    except KeyboardInterrupt:
        print("opticoll: interrupted", file=sys.stderr)
        return 130
    except BaseException as error:
        # A panic of the compiled core is our bug, whatever the input was.
        if type(error).__name__ != "PanicException":
            raise
        print(f"opticoll: internal error: {error}; please report it", file=sys.stderr)
        return 70


def refuse(message: str, hint: str | None) -> int:
    """Say what was wrong on standard error; returns the exit code for bad input."""
    print(f"opticoll: error: {' '.join(message.split())}", file=sys.stderr)
    if hint is not None:
        print(f"hint: {hint}", file=sys.stderr)
    return 2
