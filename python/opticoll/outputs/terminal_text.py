"""Foreign text made safe for a terminal: characters that do not print become escapes.

Names of files, and names in files, may contain control characters, or characters that change the
direction of writing. Such characters could hide or fake a result. The escapes are the escapes of
JSON, so escaped JSON keeps its meaning.

>>> escaped("ring" + chr(27) + "[2K"), escaped("two" + chr(10) + "lines")
('ring\\\\u001b[2K', 'two\\\\u000alines')
>>> shortened("`" + 1000 * "x" + "` is none", 4)
'`xxx... 998 more characters is none'
"""

from __future__ import annotations

import codecs
import re

ESCAPING = "opticoll.escaping"
"""Name of the error handler that escapes characters which a stream's encoding lacks."""


def escaped(line: str) -> str:
    """Escapes the characters of a line that do not print."""
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else _escape(character) for character in line
    )


def escaped_lines(text: str) -> str:
    """Escapes the characters of lines that do not print, except line ends."""
    return "\n".join(map(escaped, text.split("\n")))


def shortened(line: str, longest: int) -> str:
    """Cuts words to `longest` characters, and the line to ten times this length."""

    def cut(text: str, most: int) -> str:
        excess = len(text) - most
        return text if excess <= 0 else f"{text[:most]}... {excess} more characters"

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
