"""Lengths of the fibres of a graph, and positions of its vertices.

If an edge has no length, but both ends have positions, the length of the fibre is the great-circle
distance of the ends. Real fibres are longer, because they follow roads and railways.

>>> great_circle_metres((47.61, -122.33), (37.44, -122.14))
1131000
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from math import asin, cos, radians, sin, sqrt

from opticoll.formats.document import Place
from opticoll.formats.network_graph import MisplacedError

LENGTHS = ("length", "length_km", "distance", "distance_km", "dist")
"""Attributes with the length of an edge in km, in order of preference."""

_LATITUDES = ("latitude", "lat")
_LONGITUDES = ("longitude", "lon", "lng", "long")

EARTH_RADIUS_METRES = 6_371_008.8
"""Mean radius of the earth (GRS 80, International Union of Geodesy and Geophysics)."""

ROUNDED_FROM_METRES = 10_000
"""Distance from which a great-circle distance is rounded to kilometres.

Files give the position of a city, not of a building.
"""

Position = tuple[float, float]
"""Latitude and longitude in degrees."""


def great_circle_metres(start: Position, end: Position) -> int:
    """Returns the distance of two positions along a great circle (haversine formula)."""
    (south, west), (north, east) = [tuple(map(radians, place)) for place in (start, end)]
    chord = sin((north - south) / 2) ** 2 + cos(south) * cos(north) * sin((east - west) / 2) ** 2
    metres = 2 * EARTH_RADIUS_METRES * asin(min(1.0, sqrt(chord)))
    return int(round(metres, -3 if metres >= ROUNDED_FROM_METRES else 0))


def position_of(
    place: Place, name: str, attributes: Mapping[str, object], read: set[str]
) -> Position | None:
    """Returns the position that a node states, or None; adds the attributes' names to `read`.

    `place` is the place of the node in its file, and `name` is its name.

    Raises
    ------
    MisplacedError
        A coordinate is no number, or out of range.
    """
    degrees = []
    for names, most in ((_LATITUDES, 90), (_LONGITUDES, 180)):
        key = next((key for key in attributes if key.lower() in names), None)
        text = "" if key is None else str(attributes[key]).strip()
        if key is None or text.lower() in ("", "none", "nan"):
            continue
        read.add(key)
        try:
            value = float(text)
        except ValueError:
            value = most + 1.0
        if not -most <= value <= most:
            problem = (
                f"`{text}` of {name} is not a {names[0]}; write degrees from -{most} to {most}"
            )
            raise MisplacedError((*place, key), problem)
        degrees.append(value)
    return (degrees[0], degrees[1]) if len(degrees) == 2 else None


def length_text(place: Place, value: Decimal | str | None) -> str | None:
    """Returns a length as text with its unit; a number is in km, rounded to metres.

    Raises
    ------
    MisplacedError
        The text is not a length.
    """
    if isinstance(value, str) and not re.fullmatch(r"[0-9.]+\s*k?m", value):
        problem = f"`{value}` is not a length; write a number of km, or a text such as 500m"
        raise MisplacedError(place, problem)
    return f"{value * 1000:.0f}m" if isinstance(value, Decimal) else value


def position_text(position: Position | None) -> str:
    """Returns a position as in the option `positions` of a graph."""
    return "unknown" if position is None else "/".join(f"{one:.5f}" for one in position)
