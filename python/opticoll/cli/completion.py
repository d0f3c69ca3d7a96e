"""Shell completion: scripts for bash, zsh and fish that contain the names of records.

The scripts complete commands, options, and values that have names; otherwise they complete files.

>>> "double_tree scatter_all_gather" in script("bash")
True
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Literal, get_args, get_origin

from opticoll.cli import command_line
from opticoll.commands import COMMANDS, installed
from opticoll.names import DEFAULT_ALGORITHM
from opticoll.outputs.records import KINDS, record_rows

Shell = Literal["bash", "zsh", "fish"]

OPTION_KINDS = {
    "algorithm": ("algorithms",),
    "algorithms": ("algorithms",),
    "collective": ("collectives",),
    "congestion": ("congestion_policies",),
    "device": ("devices",),
    "expert_skew": ("skews",),
    "fabric": ("fabrics", "presets"),
    "instead": ("algorithms",),
    "kind": KINDS,
    "model": ("models",),
    "policy": ("policies",),
    "simulator": ("simulators",),
    "start": ("start_rules",),
    "wavelength": ("wavelengths",),
}
"""Kinds of records by option: names of these records are the values of the option."""

COMMON_OPTIONS = ("--help", "--help-all", "--memory-limit")
FIRST_OPTIONS = ("--completion", "--help", "--help-all", "--version")

BASH = """\
_opticoll() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} before= words=
    [[ $cur == = ]] && cur=
    [[ $prev == = ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}
    if ((COMP_CWORD == 1)); then
        words='{commands}'
        [[ $cur == -* ]] && words='{first}'
    elif [[ $cur == -* ]]; then
        case ${{COMP_WORDS[1]}} in
{options}
        esac
    else
        case ${{COMP_WORDS[1]}}:$prev in
{values}
        *:-*) ;;
        *) ((COMP_CWORD == 2)) && case ${{COMP_WORDS[1]}} in
{places}
            esac ;;
        esac
    fi
    [[ $cur == *,* ]] && before=${{cur%,*}},
    COMPREPLY=($(compgen -P "$before" -W "$words" -- "${{cur##*,}}"))
}}
complete -o default -F _opticoll opticoll
"""


def script(shell: Shell) -> str:
    """Returns the completion script for a shell."""
    places: dict[str, list[str]] = {}
    options: dict[str, list[str]] = {}
    values: dict[str, dict[str, list[str]]] = {}
    for command, record in installed().items():
        options[command] = [f"--{file.option.replace('_', '-')}" for file in record.files]
        for option in command_line.options(record.parameters).values():
            if option.unsaid:
                continue
            if not option.flag:
                places[command] = [*record.names] or _words(option, command)
                continue
            options[command].append(option.flag)
            values.setdefault(option.flag, {})[command] = _words(option, command)
        options[command] += ["--json", *COMMON_OPTIONS]
    values["--completion"] = {"--completion": list(get_args(Shell))}
    if shell == "fish":
        return _fish(options, values, places)
    bash = BASH.format(
        commands=" ".join(COMMANDS),
        first=" ".join(FIRST_OPTIONS),
        options=_cases(options),
        values=_cases(
            {
                # `*` stands for all commands, if they offer the same words.
                f"{command if len({*map(tuple, by_command.values())}) > 1 else '*'}:{flag}": words
                for flag, by_command in values.items()
                for command, words in by_command.items()
            }
        ),
        places=_cases(places),
    )
    if shell == "bash":
        return bash
    return f"#compdef opticoll\nautoload -U +X compinit bashcompinit\nbashcompinit\n{bash}"


def _words(option: command_line.Option, command: str) -> list[str]:
    """Returns the names that an option of a command accepts; empty if its values have no names."""
    hints: list[Any] = [option.hint, *get_args(option.hint)]
    for hint in hints:
        if get_origin(hint) is Literal:
            return list(get_args(hint))
    if int in hints or bool in hints:
        return []
    if option.name == "format":
        from opticoll import exports
        from opticoll.inputs import imported

        written = [*exports.KNOWN, *exports.FABRICS, *exports.CHOICES]
        return written if command == "export" else list(imported.KNOWN)
    kinds = OPTION_KINDS.get(option.name, ())
    names = [record.name for kind in kinds for record in record_rows(kind)]
    if option.name == "kind":
        names = [*KINDS, "formats", "schemas", *names]
    if option.name.startswith("algorithm") or option.name == "instead":
        names.append(DEFAULT_ALGORITHM)
    for kind in ("settings", "burst_settings"):
        about = [record for record in record_rows(kind) if record.name == option.name and not kinds]
        lists = [
            part.meaning for record in about for part in record.options if part.name == "values"
        ]
        names += [
            word
            for text in lists
            if re.fullmatch(r"\w+(, \w+)+", text)
            for word in text.split(", ")
        ]
    return list(dict.fromkeys(names))


def _cases(words: dict[str, list[str]]) -> str:
    """Returns the branches of a shell's `case` statement; each branch sets the words of a name."""
    some = {name: listed for name, listed in words.items() if listed}
    return "\n".join(
        f"        {name}) words='{' '.join(names)}' ;;" for name, names in some.items()
    )


def _fish(
    options: dict[str, list[str]],
    values: dict[str, dict[str, list[str]]],
    places: dict[str, list[str]],
) -> str:
    """Returns the script for fish, with a line per command, option and first argument."""
    lines = [
        f"complete -c opticoll -n __fish_use_subcommand -f -a {name} -d {shlex.quote(summary)}"
        for name, summary in COMMANDS.items()
    ]
    lines += [
        f"complete -c opticoll -n __fish_use_subcommand -l {name[2:]}" for name in FIRST_OPTIONS
    ]
    for name in dict.fromkeys(name for flags in options.values() for name in flags):
        by_words: dict[str, list[str]] = {}
        for command in (command for command, flags in options.items() if name in flags):
            words = " ".join(values.get(name, {}).get(command, []))
            by_words.setdefault(words, []).append(command)
        for words, commands in by_words.items():
            seen = f"__fish_seen_subcommand_from {' '.join(commands)}"
            place = f"complete -c opticoll -n '{seen}' -l {name[2:]}"
            lines.append(place + (f" -r -a '{words}'" if words else ""))
    for command, place_words in places.items():
        place = f"complete -c opticoll -n '__fish_seen_subcommand_from {command}'"
        lines += [f"{place} -a '{' '.join(place_words)}'"] if place_words else []
    return "\n".join([*lines, ""])
