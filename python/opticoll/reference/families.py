"""List of the families of fabrics, and the reader of fabric specifications."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from opticoll.reference import (
    circuit_switch,
    graph,
    grid,
    lightpath_grid,
    links,
    ring,
    servers,
    star,
)
from opticoll.reference.plan import Fabric
from opticoll.reference.words import Check, expect, plain

FAMILIES: dict[str, tuple[dict[str, Check], Callable[[dict[str, str]], Fabric]]] = {
    "wdm_ring": (ring.OPTIONS, ring.Ring),
    "wss_grid": (grid.OPTIONS, grid.Grid),
    "lightpath_grid": (lightpath_grid.OPTIONS, lightpath_grid.LightpathGrid),
    "passive_star": (star.OPTIONS, star.Star),
    "circuit_switch": (circuit_switch.OPTIONS, circuit_switch.CircuitSwitch),
    **{
        family: (options, partial(links.checked, family))
        for family, options in links.OPTIONS.items()
    },
    **{
        family: (options, partial(graph.Graph, family)) for family, options in graph.OPTIONS.items()
    },
    "gpu_servers": (servers.OPTIONS, lambda options: servers.servers(read_fabric, options)),
}
"""For each family, the checks of its options, and the function that creates a fabric."""


def read_fabric(text: str) -> Fabric:
    """Returns the fabric of a specification such as `family:key=value,key=value`."""
    name, colon, text_of_options = text.partition(":")
    named = [family for family in FAMILIES if plain(family) == plain(name)]
    expect(named != [], f"the reference knows no fabric `{name}`; spell it in full")
    (family,) = named
    checks, fabric = FAMILIES[family]
    options = options_of(text_of_options) if colon else {}
    for key, value in options.items():
        expect(key in checks, f"{family} has no option `{key}`")
        checks[key](value)
    return fabric(options)


def options_of(text: str) -> dict[str, str]:
    """Returns the options of a text such as `key=value,key=value`; no key may occur twice.

    A key may have upper-case letters, and `-` in place of `_`. A key without a value gets `yes`.
    """
    values: dict[str, str] = {}
    for option in text.split(","):
        key, equals, value = option.partition("=")
        value = value if equals else "yes"
        key = key.lower().replace("-", "_")
        expect(key.isascii(), f"no option is called `{key}`")
        expect(key != "" and value != "", f"`{option}` is not a key=value")
        expect(key not in values, f"`{key}` is given twice")
        values[key] = value
    return values
