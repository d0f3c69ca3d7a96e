"""Foreign text made safe for a terminal: characters that do not print become escapes.

Names of files, and names in files, may hold control characters or characters that change the
direction of writing, and could hide or fake a result. Escapes are those of JSON, so that JSON
keeps its meaning.

>>> escaped("ring" + chr(27) + "[2K"), escaped("two" + chr(10) + "lines")
('ring\\\\u001b[2K', 'two\\\\u000alines')
>>> shortened("`" + 1000 * "x" + "` is none", 4)
'`xxx... 998 more characters is none'
"""

from __future__ import annotations

import codecs
import re

ESCAPING = "opticoll.escaping"
"""Name of the error handler with which streams write characters that their encoding lacks."""


def escaped(line: str) -> str:
    """Returns a line with escapes for characters that do not print."""
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else _escape(character) for character in line
    )


def escaped_lines(text: str) -> str:
    """Returns lines with escapes for characters that do not print."""
    return "\n".join(map(escaped, text.split("\n")))


def shortened(line: str, longest: int) -> str:
    """Returns a line with words of at most `longest` characters, cut to ten times that length."""

    def cut(text: str, most: int) -> str:
        rest = len(text) - most
        return text if rest <= 0 else f"{text[:most]}... {rest} more characters"

    words = re.sub(rf"\S{{{longest + 1},}}", lambda word: cut(word[0], longest), line)
    return cut(words, 10 * longest)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{pair}" for pair in pairs)


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_escape, error.object[error.start : error.end])), error.end


codecs.register_error(ESCAPING, _escape_unencodable)
