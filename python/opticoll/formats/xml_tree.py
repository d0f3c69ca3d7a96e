"""XML as elements with the lines on which they stand.

Document types are refused, and with them entities, which are all that makes a small file large; so
are files that are larger, and elements that are nested deeper, than any real one.

>>> root = parse('<graph id="g">\\n  <node id="a"/>\\n</graph>')
>>> [(one.tag, one.line, one.attributes) for one in root.walk()]
[('graph', 1, {'id': 'g'}), ('node', 2, {'id': 'a'})]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from opticoll import memory
from opticoll.formats.network_graph import MisplacedError

MOST_BYTES = 64 * 2**20
"""Bytes of a file."""

MOST_DEPTH = 64
"""Elements inside one another."""

MOST_ELEMENTS = 2**21
"""Elements of a file."""

BYTES_PER_ELEMENT = 400
"""What an element takes, or an attribute with its name."""

MOST_ATTRIBUTE = 4096
"""Characters of an attribute."""


@dataclass(slots=True)
class Element:
    """An element; its tag is without the name of its namespace."""

    tag: str
    attributes: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in the element, without that in its children."""
        return "".join(self.texts)

    def walk(self) -> Iterator[Element]:
        """Yields the element and all that are inside it, in the order of the file."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)

    def named(self, *tags: str) -> Iterator[Element]:
        """Returns the children with one of these tags."""
        return (one for one in self.children if one.tag in tags)


def parse(text: str) -> Element:
    """Returns the outermost element of a text, whatever encoding the text names.

    Raises
    ------
    MisplacedError
        It is no XML, has a document type, or exceeds a limit.
    """
    outermost = Element("", {}, 0)
    open_elements = [outermost]
    count = 0
    # Text is encoded anew, so that no encoding that the file names counts.
    parser = expat.ParserCreate("utf-8", namespace_separator="}")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        if count > MOST_ELEMENTS:
            raise MisplacedError((), f"there are more than {MOST_ELEMENTS} elements")
        if len(open_elements) > MOST_DEPTH:
            problem = f"elements are nested more than {MOST_DEPTH} deep"
            raise MisplacedError((f"line {line}",), problem)
        if any(len(value) > MOST_ATTRIBUTE for value in attributes.values()):
            problem = f"an attribute is longer than {MOST_ATTRIBUTE} characters"
            raise MisplacedError((f"line {line}",), problem)
        element = Element(tag.rpartition("}")[2], attributes, line)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def characters(written: str) -> None:
        open_elements[-1].texts.append(written)

    def document_type(*_: object) -> None:
        raise MisplacedError((), "a document type is not accepted; leave it out")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = document_type
    if len(text) > MOST_BYTES:
        raise MisplacedError((), f"the file is too large: it holds more than {MOST_BYTES} bytes")
    memory.take_values("reading this XML", text, "<=", BYTES_PER_ELEMENT)
    try:
        parser.Parse(text.encode("utf-8"), True)
    except MisplacedError:
        raise
    except (expat.ExpatError, ValueError) as error:
        raise MisplacedError((), f"this is no XML: {error}") from error
    return outermost.children[0]
