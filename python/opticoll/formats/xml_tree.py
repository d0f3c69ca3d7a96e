"""XML as a tree of elements, each with the line on which it begins.

Declarations of document types are refused, because their entities could expand a small file to a
huge one. A document type that only names a file is accepted; the named file is not read. Files that
are larger or more deeply nested than real files are refused too.

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

MAX_BYTES = 64 * 2**20
"""Maximum size of a file in bytes."""

MAX_DEPTH = 64
"""Maximum nesting depth of elements."""

MAX_ELEMENTS = 2**21
"""Maximum number of elements of a file."""

BYTES_PER_ELEMENT = 400
"""Bytes of memory for an element, or for an attribute with its name."""

MAX_ATTRIBUTE_LENGTH = 4096
"""Maximum number of characters of an attribute."""


@dataclass(slots=True)
class Element:
    """XML element; `tag` is the element's name without its namespace."""

    tag: str
    attributes: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the element, without the text of its children."""
        return "".join(self.texts)

    def walk(self) -> Iterator[Element]:
        """Yields the element and all its descendants in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def named(self, *tags: str) -> Iterator[Element]:
        """Yields the children with a tag in `tags`."""
        return (child for child in self.children if child.tag in tags)


def parse(text: str) -> Element:
    """Parses XML and returns the root element; the encoding that the text names is ignored.

    Raises
    ------
    MisplacedError
        The text is not XML, has declarations of a document type, or exceeds a limit.
    """
    outermost = Element("", {}, 0)
    open_elements = [outermost]
    count = 0
    # The parser receives UTF-8, whatever encoding the file names.
    parser = expat.ParserCreate("utf-8", namespace_separator="}")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        if count > MAX_ELEMENTS:
            raise MisplacedError((), f"there are more than {MAX_ELEMENTS} elements")
        if len(open_elements) > MAX_DEPTH:
            problem = f"elements are nested more than {MAX_DEPTH} deep"
            raise MisplacedError((f"line {line}",), problem)
        if any(len(value) > MAX_ATTRIBUTE_LENGTH for value in attributes.values()):
            problem = f"an attribute is longer than {MAX_ATTRIBUTE_LENGTH} characters"
            raise MisplacedError((f"line {line}",), problem)
        element = Element(tag.rpartition("}")[2], attributes, line)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def characters(written: str) -> None:
        open_elements[-1].texts.append(written)

    def document_type(_tag: str, _system: object, _public: object, declares: int) -> None:
        if declares:
            raise MisplacedError((), "a document type with declarations is not accepted")

    def entity(name: str, _is_parameter: bool) -> None:
        raise MisplacedError((f"line {parser.CurrentLineNumber}",), f"entity `{name}` is not known")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = document_type
    parser.SkippedEntityHandler = entity
    if len(text) > MAX_BYTES:
        raise MisplacedError((), f"the file is too large: it holds more than {MAX_BYTES} bytes")
    memory.take_values("reading this XML", text, "<=", BYTES_PER_ELEMENT)
    try:
        parser.Parse(text.encode("utf-8"), True)
    except MisplacedError:
        raise
    except (expat.ExpatError, ValueError) as error:
        raise MisplacedError((), f"this is not valid XML: {error}") from error
    return outermost.children[0]
