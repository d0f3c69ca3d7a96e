"""Command line of opticoll; `opticoll COMMAND --help` lists the parameters of a command.

Results go to standard output, and all other messages to standard error. Exit codes:

* 0: success
* 1: a plan violates a rule
* 2: invalid input; a single line names the problem, and nothing is written
* 70: bug in opticoll
* 130: interrupted
* 141: the reader of standard output has ended

Only this module prints. Commands return text, and `main` prints the text at the end, so a failure
leaves nothing on standard output.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

from cyclopts import App, CycloptsError, Group, UnusedCliTokensError

from opticoll import __version__, _core, errors
from opticoll.cli.help_page import HelpPage, example
from opticoll.cli.options import all_settings_shown
from opticoll.cli.runner import Answer
from opticoll.commands import COMMANDS, GROUPS
from opticoll.outputs.terminal_text import ESCAPING, escaped, escaped_lines, shortened

HELP_FLAGS = ("--help", "-h", "--help-all")

app = App(
    name="opticoll",
    version=f"opticoll {__version__}",
    help="Plan, prove and simulate collective communication on optical interconnects.",
    help_flags=HELP_FLAGS,
    help_formatter=HelpPage(),
    help_format="plaintext",
    group_parameters=Group("Options", sort_key=1),
    group_commands=Group("Options", sort_key=len(GROUPS)),
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


@app.command(name="--completion", help="Script that completes words in bash, zsh or fish.")
def completion(shell: Literal["bash", "zsh", "fish"], /) -> Answer:
    """Returns the script with which a shell completes words."""
    from opticoll.cli.completion import script

    return Answer(script(shell).rstrip("\n"), 0)


app["--help"].help = "Help; each command also takes --memory-limit 4GiB"
app["--version"].help = "Version"
for _place, (_title, _commands) in enumerate(GROUPS.items()):
    _group = Group(_title, sort_key=_place)
    for _name, _summary in _commands.items():
        app.command(
            f"opticoll.commands.{_name}:command_line",
            name=_name,
            help=_summary,
            group=_group,
            sort_key=list(COMMANDS).index(_name),
        )


TERMS = "Terms: https://github.com/opticoll/opticoll/blob/main/docs/glossary.md"
"""Line of help pages that refers to the glossary, which explains the terms of the output."""


def help_footer(words: Sequence[str]) -> str:
    """Returns the last lines of a help page: further commands, and an example."""
    name = next((word for word in words if word in COMMANDS), None)
    if words and not any(word in HELP_FLAGS for word in words):
        return ""
    if name is None:
        return "\n".join([example("opticoll compare all_gather --fabric optree_paper"), ""])
    line = import_module(f"opticoll.commands.{name}").COMMAND.example
    lines = [TERMS] if name == "list" else []
    if "--help-all" not in words:
        lines.append(f"All options: opticoll {name} --help-all")
    return "\n".join([*lines, example(line), ""])


READER_GONE_CODE = 141
"""Exit code after the reader of standard output has ended, as after SIGPIPE: 128 + 13."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line, and returns the exit code; `argv` are the words after `opticoll`."""
    words = list(sys.argv[1:] if argv is None else argv)
    prepare()
    try:
        words = without_memory_limit(words)
        with all_settings_shown("--help-all" in words), notes_printed():
            answer = app(words, exit_on_error=False, print_error=False)
        if not isinstance(answer, Answer):
            return print_result(help_footer(words))
        for note in [*rounded_rates(words), *answer.notes]:
            say(f"opticoll: {note}")
        code = print_result(f"{answer.text}\n", answer.code)
        if answer.failure is not None:
            raise answer.failure
        return code
    except CycloptsError as error:
        if isinstance(error.__cause__, errors.OpticollError):
            return refuse(str(error.__cause__), error.__cause__.hint, error.__cause__)
        command = " ".join(error.command_chain or ())
        hint = split_value_hint(words) or f"see `opticoll {command} --help`".replace("  ", " ")
        unused = type(error) is UnusedCliTokensError and error.unused_tokens
        words_said = f"`{unused[0]}` belongs to no option" if unused else str(error)
        return refuse(words_said, hint)
    except errors.OpticollError as error:
        return refuse(str(error), error.hint, error)
    except UnicodeEncodeError as error:
        return refuse(f"`{error.object}` is not text: it holds half characters", None)
    except MemoryError:
        return refuse("there is not enough memory for this", "try fewer ranks")
    except KeyboardInterrupt as error:
        say("; ".join(["opticoll: interrupted", *notes_of(error)]))
        return 130
    except SystemExit:
        # rich prints the help, and raises SystemExit if the reader of standard output has ended.
        return READER_GONE_CODE
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            discard_output()
        place = "" if error.filename is None else f" `{error.filename}`"
        # Only help and version are printed before `print_result` is called.
        is_help = not words or {"--help", "--help-all", "--version"} & {*words}
        what = "print the result" if is_help else f"read or write{place}"
        return refuse(f"cannot {what}: {error.strerror or error}", None)
    except BaseException as error:
        # An unexpected exception is a bug of opticoll. Panics of the compiled core are no
        # Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        say(f"opticoll: internal error: {one_line(error)}; please report it")
        return 70


def prepare() -> None:
    """Repairs closed standard streams, and removes `IGNORED_VARIABLES` from the environment."""
    if sys.stderr is None:
        # Otherwise the next file to be opened would become standard error.
        while (nowhere := os.open(os.devnull, os.O_WRONLY)) < STANDARD_ERROR:
            pass
        sys.stderr = os.fdopen(nowhere, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPING)
    for name in IGNORED_VARIABLES:
        os.environ.pop(name, None)


STANDARD_ERROR = 2

IGNORED_VARIABLES = ("MPLBACKEND", "SOURCE_DATE_EPOCH")
"""Environment variables that may prevent matplotlib from starting; `prepare` removes them."""

MAX_WORD_LENGTH = 300
"""Maximum number of characters of a word in a message; longer words are cut."""


def without_memory_limit(words: list[str]) -> list[str]:
    """Applies the option `--memory-limit`, which all commands have; returns the other words."""
    remaining, values = [], []
    words_left = iter(words)
    for word in words_left:
        option, equals, value = word.partition("=")
        if option != "--memory-limit":
            remaining.append(word)
        else:
            values.append(value if equals else next(words_left, ""))
    if len(values) > 1:
        raise errors.UsageError("--memory-limit is given twice")
    if values == [""]:
        raise errors.UsageError("--memory-limit needs a size, such as 4GiB")
    _core.set_memory_limit(values[0] if values else None)
    return remaining


def rounded_rates(words: Sequence[str]) -> list[str]:
    """Returns a note on each rate in `words` that is not a whole number of bits per second."""
    notes = {}
    for rate in re.findall(r"(?<==)[0-9.]+[A-Za-z]+/s", " ".join(words)):
        with suppress(errors.UnitError):
            if rounded := _core.rounded_rate(rate):
                notes[rate] = f"the rate {rate} is rounded to {rounded}"
    return list(notes.values())


@contextmanager
def notes_printed() -> Iterator[None]:
    """Prints each note on the reading of files once, as soon as it is issued."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", errors.ReadingNote)
        others = warnings.showwarning
        printed: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, errors.ReadingNote):
                others(message, category, *place, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                say(f"opticoll: {message}")

        warnings.showwarning = show
        yield


def print_result(text: str, code: int = 0) -> int:
    """Prints a result; returns `code`, or another exit code if printing fails."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        print(escaped_lines(text), end="", flush=True)
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does.
        discard_output()
        return code or READER_GONE_CODE
    except OSError as error:
        discard_output()
        return code or refuse(f"cannot print the result: {error.strerror or error}", None)
    return code


def discard_output() -> None:
    """Redirects standard output to the null device, so that Python's exit does not fail."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    """Returns an error as one line, with the file and the line of code that raised it."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    )
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


LIST_OPTIONS = ("--algorithms", "--fabrics", "--sizes", "--wavelengths", "--reconfiguration")
"""Options whose values are lists separated by commas."""


def split_value_hint(words: Sequence[str]) -> str | None:
    """Returns a hint if a value was split at blanks, such as `4 MiB` or a list with blanks."""
    for number, unit in pairwise(words):
        if re.fullmatch(r"[0-9.]+", number) and re.fullmatch(r"[kKMGTP]?i?B|[munp]?s", unit):
            return f"write {number}{unit}, without a space"
    for option, first, second in zip(words, words[1:], words[2:], strict=False):
        if option in LIST_OPTIONS and not {first[:1], second[:1]} & {"-"}:
            return f"write {option} {first},{second}, with commas and without spaces"
    return None


def say(line: str) -> None:
    """Prints a line on standard error, unless standard error is closed."""
    with suppress(OSError):
        print(shortened(escaped(line), MAX_WORD_LENGTH), file=sys.stderr, flush=True)


def notes_of(error: BaseException) -> list[str]:
    """Returns the notes on an error, for example on the rows that were written before the error."""
    return getattr(error, "__notes__", [])


def refuse(message: str, hint: str | None, error: BaseException | None = None) -> int:
    """Prints an error on standard error, and returns the exit code: 2 for invalid input."""
    for note in [] if error is None else notes_of(error):
        say(f"opticoll: {note}")
    say(f"opticoll: error: {' '.join(message.split())}")
    if hint is not None:
        say(f"hint: {hint}")
    return getattr(error, "exit_code", 2)
