"""Command `reproduce`, which the package opticoll-papers provides: recomputes papers' numbers."""

from importlib.metadata import entry_points

from opticoll.cli.runner import on_command_line
from opticoll.errors import UsageError, installing

_found = entry_points(group="opticoll.commands", name="reproduce")
if not _found:
    raise UsageError(
        f"`reproduce` needs a package that is not installed; `{installing('papers')}` does it"
    )
COMMAND = next(iter(_found)).load()
command_line = on_command_line(COMMAND)
