"""Lightpaths and light trees of a slot: the transfers that share the light of their source.

>>> import opticoll
>>> star = opticoll.plan("broadcast", "passive_star:ranks=4,wavelengths=1", "direct")
>>> lights_of(star, 0)
Lights(of=[0, 0, 0], trees=set())
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from opticoll._core import BESIDE, CONVERTED, Fabric, Plan
from opticoll.outputs.layout import plural

NO_FIBRE = 255
"""Fibre of a packet, which is no fibre of any fabric."""


@dataclass(frozen=True)
class Lights:
    """Number of the light of each transfer of a slot, and the numbers of light trees."""

    of: list[int]
    trees: set[int]

    def __len__(self) -> int:
        return len(set(self.of))


def joins_servers(fabric: Fabric) -> bool:
    """Returns whether light joins servers of GPUs, within which messages are packets."""
    return not fabric.electrical and fabric.family == "gpu_servers"


def is_packet(light: Mapping[str, int | str]) -> bool:
    """Returns whether the fields of a light mean a packet, which uses no circuit."""
    converted = light.get("fibre") == NO_FIBRE and light.get("wavelength") == CONVERTED
    return converted or light.get("source_port") == BESIDE


def counted(lights: int, trees: int, noun: str = "lightpath") -> str:
    """Returns a number of lights in words; `trees` of them are light trees.

    >>> counted(3, 0), counted(3, 1), counted(2, 2)
    ('3 lightpaths', '1 light tree and 2 lightpaths', '2 light trees')
    """
    parts = [plural(trees, "light tree")] if trees else []
    if lights > trees or not trees:
        parts.append(plural(lights - trees, noun))
    return " and ".join(parts)


def lights_of(plan: Plan, slot: int) -> Lights:
    """Returns the lightpaths and light trees of a slot, numbered by their first transfers.

    With `multicast=drop_and_continue`, transfers of the same chunks from one rank, on one light and
    over the same first link are a light tree. On a graph of fibres, other transfers with the same
    route and light are one lightpath, unless converters choose the wavelength. On a passive star,
    copies of the same chunks on one wavelength are one lightpath.
    """
    columns = plan.slot_columns(slot)
    fields = list(plan.fabric.light_fields)
    is_star = fields == ["wavelength"]
    has_routes = "fibre" in fields and "direction" not in fields
    has_trees = plan.fabric.option("multicast") == "drop_and_continue"
    names = ("transfer", "source", "action", "chunk", "count")
    facts = list(zip(*(columns[name].tolist() for name in names), strict=True))
    light = list(zip(*(columns[name].tolist() for name in fields), strict=True))
    if not (is_star or has_routes or has_trees):
        return Lights(list(range(len(facts))), set())
    routes = [tuple(plan.route(fact[0])) if has_routes else () for fact in facts]
    groups: dict[Hashable, list[int]] = {}
    for index, (_, source, action, *chunks) in enumerate(facts):
        key = (source, action, *chunks, light[index], routes[index][:1])
        # Only copies reach several ranks of a star: a coupler adds nothing up.
        alone = not has_trees and not (is_star and action == 0)
        groups.setdefault(index if alone else key, []).append(index)
    numbers: dict[Hashable, int] = {}
    of, trees = [0] * len(facts), set()
    for transfers in groups.values():
        first = transfers[0]
        is_tree = len(transfers) > 1
        converted = CONVERTED in light[first]
        shared = has_routes and not is_tree and not converted
        path = (facts[first][1], light[first], routes[first])
        number = numbers.setdefault(path if shared else first, len(numbers))
        for index in transfers:
            of[index] = number
        if is_tree and has_trees:
            trees.add(number)
    return Lights(of, trees)
