"""How the spelling of a fabric is read, for the slow, readable verifier.

Every option has a pattern, or the range of a whole number. What is not of the form is refused, also
where the rules have no use for it: a plan that names its fabric wrongly is proved for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from opticoll.reference.grid import read_grid
from opticoll.reference.plan import Budget, Fabric, NotAPlan

Check = Callable[[str], object]


def whole(word: str, most: int = 2**32 - 1) -> int:
    """A whole number without sign, of at most so much."""
    expect(word.isascii() and word.isdigit(), f"`{word}` is no whole number")
    number = int(word)
    expect(number <= most, f"`{word}` is more than {most}")
    return number


def expect(condition: bool, problem: str) -> None:
    if not condition:
        raise NotAPlan(problem)


def plain(name: str) -> str:
    """A name without what may be written in several ways."""
    return name.lower().replace("_", "").replace("-", "")


def count(most: int) -> Check:
    """From 1 to so many."""

    def check(word: str) -> None:
        expect(whole(word, most) >= 1, f"`{word}` is less than 1")

    return check


def one_of(*words: str) -> Check:
    return lambda word: expect(word in words, f"`{word}` is none of {', '.join(words)}")


def like(pattern: str) -> Check:
    return lambda word: expect(bool(re.fullmatch(pattern, word)), f"`{word}` is not of the form")


TIMES = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}
BYTES = {"B": 1} | {
    prefix + unit: base**power
    for unit, base, first in (("iB", 1024, "K"), ("B", 1000, "k"))
    for power, prefix in enumerate((first, "M", "G", "T"), start=1)
}
RATES = {f"{unit}/s": 8 * size for unit, size in BYTES.items()} | {
    f"{unit[:-1]}b/s": size for unit, size in BYTES.items() if "i" not in unit
}


def quantity(word: str, units: dict[str, int]) -> Fraction:
    """A number and a unit, such as `2.5us`, in the smallest unit; below 2^64."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(.+)", word, re.ASCII)
    if match is None or match[2] not in units:
        raise NotAPlan(f"`{word}` has no number or no unit; known units are {', '.join(units)}")
    amount = Fraction(match[1]) * units[match[2]]
    expect(amount < 2**64, f"`{word}` is too much")
    return amount


def time(word: str) -> None:
    expect(quantity(word, TIMES) % 1 == 0, f"`{word}` is no whole number of ps")


def size(word: str) -> None:
    amount = quantity(word, BYTES | {"KB": 1000})
    expect(amount % 1 == 0, f"`{word}` is no whole number of bytes")


def rate(word: str) -> None:
    expect(quantity(word, RATES) >= 1, f"`{word}` is less than 1 b/s")


def power(unit: str, sign: str) -> Check:
    return like(sign + r"[0-9]{1,3}(\.[0-9]{1,6})?" + unit)


NUMBERS = r"[0-9]+(-[0-9]+)?(\+[0-9]+(-[0-9]+)?)*"
RANKS = count(2**20)

RING: dict[str, Check] = {
    "ranks": RANKS,
    "wavelengths": count(4096),
    "fibres": count(64),
    "rate": rate,
    "reconfiguration": time,
    "conversion": time,
    "propagation": time,
    "ports": like(r"all|[0-9]+"),
    "converters": one_of("none", "full"),
    "multicast": one_of("none", "drop_and_continue"),
    "reach": RANKS,
    "launch_power": power("dBm", "-?"),
    "sensitivity": power("dBm", "-?"),
    "through_loss": power("dB", ""),
    "drop_loss": power("dB", ""),
    "split_loss": power("dB", ""),
    "resonators": count(2**16),
    "broken": like(r"[0-9]+-[0-9]+(c?cw)?(\+[0-9]+-[0-9]+(c?cw)?)*"),
    "dead": like(r"[0-9]+(\.[0-9]+)?(\+[0-9]+(\.[0-9]+)?)*"),
}
GRID: dict[str, Check] = {
    "rows": count(4096),
    "columns": count(4096),
    "rate": rate,
    "ports": count(2**16),
    "wavelengths": count(4096),
    **dict.fromkeys(("tuning", "lock", "control", "latency", "slow_switch"), time),
    "plan": one_of("xor", "cyclic", "edge_colouring"),
    "nodes": like(rf"all|{NUMBERS}"),
    "dead_transceivers": like(r"[0-9]+\.(row|column)(\+[0-9]+\.(row|column))*"),
    "dead_ports": like(r"(row|column)[0-9]+\.[0-9]+(\+(row|column)[0-9]+\.[0-9]+)*"),
}
LIGHT_PATHS: dict[str, Check] = {
    "ranks": RANKS,
    "ports": count(2**8),
    "rate": rate,
    **dict.fromkeys(("latency", "establish", "release"), time),
}

# Of an electrical fabric the options are known by name only: its links do not matter here.
CABLES = ("rate", "latency", "duplex", "sharing")
TERMINALS = ("terminals", "terminal_rate", "terminal_latency", *CABLES)
ELECTRICAL = {
    "crossbar": ("ranks", *CABLES),
    "fat_tree": ("down", "up", "links", "arity", "levels", "taper", *CABLES),
    "dragonfly": (
        *("terminals_per_router", "routers_per_group", "global_per_router", "groups"),
        *("arrangement", "routing", "seed", "terminal_rate", "terminal_latency"),
        *("local_rate", "local_latency", "global_rate", "global_latency", *CABLES),
    ),
    "torus": ("dims", *TERMINALS),
    "mesh": ("dims", *TERMINALS),
    "ladder": ("rungs", *TERMINALS),
    "electrical_ring": ("ranks", *CABLES),
    "fully_connected": ("ranks", *CABLES),
    "custom": ("ranks", "switches", "links", "names", "ties", "rate", "latency", "sharing"),
}


def options_of(text: str) -> dict[str, str]:
    """`key=value,key=value`, each key once; its letters may be capitals, its `_` may be `-`."""
    values: dict[str, str] = {}
    for option in text.split(","):
        key, equals, value = option.partition("=")
        key = key.lower().replace("-", "_")
        expect(key.isascii(), f"no option is called `{key}`")
        expect(equals != "" and key != "" and value != "", f"`{option}` is no key=value")
        expect(key not in values, f"`{key}` is given twice")
        values[key] = value
    return values


def checked(family: str, known: dict[str, Check], values: dict[str, str]) -> dict[str, str]:
    for key, value in values.items():
        expect(key in known, f"{family} has no option `{key}`")
        known[key](value)
    return values


def read_fabric(spec: str, ranks: int) -> Fabric:
    """The fabric of a collective of so many ranks.

    Of an electrical fabric nothing but that is known here: how many ranks its options make, the
    core must say.
    """
    name, colon, options = spec.partition(":")
    families = (*ELECTRICAL, "wss_grid", "light_path_grid", "wdm_ring")
    named = [family for family in families if plain(family) == plain(name)]
    expect(named != [], "the reference knows no such fabric; spell it in full")
    (family,) = named
    values = options_of(options) if colon else {}
    if family in ELECTRICAL:
        unchecked: dict[str, Check] = dict.fromkeys(ELECTRICAL[family], len)
        unchecked |= {"rate": rate, "latency": time} if family not in ("fat_tree", "custom") else {}
        checked(family, unchecked, values)
        return Fabric(ranks, wavelengths=0, fibres=0, electrical=True)
    if family == "wss_grid":
        grid = read_grid(checked(family, GRID, values))
        return Fabric(len(grid.nodes), grid.wavelengths, fibres=2, grid=grid)
    if family == "light_path_grid":
        checked(family, LIGHT_PATHS, values)
        of_rank = whole(values.get("ports", "1"))
        return Fabric(whole(values["ranks"]), wavelengths=0, fibres=0, path_ports=of_rank)
    return read_ring(checked(family, RING, values))


def read_ring(values: dict[str, str]) -> Fabric:
    ranks, wavelengths = whole(values["ranks"]), whole(values["wavelengths"])
    fibres = whole(values.get("fibres", "1"))
    ports = values.get("ports", "all")
    if ports != "all":
        expect(1 <= whole(ports) <= 2 * fibres * wavelengths, "no such number of ports")
    broken: set[tuple[str, int]] = set()
    for cut in values["broken"].split("+") if "broken" in values else []:
        broken |= read_cut(cut, ranks)
    dead: set[tuple[int, int]] = set()
    for channel in values["dead"].split("+") if "dead" in values else []:
        fibre, _, wavelength = channel.rpartition(".")
        on = [whole(fibre, fibres - 1)] if fibre else range(fibres)
        dead |= {(number, whole(wavelength, wavelengths - 1)) for number in on}
    expect(len(dead) < fibres * wavelengths, "no wavelength is left")
    return Fabric(
        ranks=ranks,
        wavelengths=wavelengths,
        fibres=fibres,
        ports=None if ports == "all" else whole(ports),
        converters=values.get("converters", "none") == "full",
        multicast=values.get("multicast", "none") == "drop_and_continue",
        reach=whole(values["reach"]) if "reach" in values else None,
        budget=read_budget(values, wavelengths),
        broken=frozenset(broken),
        dead=frozenset(dead),
    )


def read_cut(cut: str, ranks: int) -> set[tuple[str, int]]:
    """`3-4` is both ways between ranks 3 and 4, `3-4cw` and `3-4ccw` one of them."""
    ends = cut.removesuffix("cw").removesuffix("c")
    lower, upper = (whole(end, ranks - 1) for end in ends.split("-"))
    if (lower + 1) % ranks != upper:
        lower, upper = upper, lower
    expect(ranks > 1 and (lower + 1) % ranks == upper, f"`{ends}` are no neighbours")
    links = {("cw", lower), ("ccw", upper)}
    return {link for link in links if cut == ends or cut == ends + link[0]}


def read_budget(values: dict[str, str], wavelengths: int) -> Budget | None:
    """What limits the reach of light: three values are needed, or none of all is given."""
    needed = ("launch_power", "sensitivity", "through_loss")
    if not {*needed, "drop_loss", "split_loss", "resonators"} & set(values):
        return None
    for key in needed:
        expect(key in values, f"`{key}` is missing")

    def decibels(key: str) -> Decimal:
        return Decimal(values.get(key, "0").rstrip("dBm"))

    budget = Budget(
        launch_power=decibels("launch_power"),
        sensitivity=decibels("sensitivity"),
        through_loss=decibels("through_loss"),
        drop_loss=decibels("drop_loss"),
        split_loss=decibels("split_loss"),
        resonators=whole(values.get("resonators", str(wavelengths))),
    )
    expect(budget.arrives(1, 0) >= budget.sensitivity, "light does not even reach a neighbour")
    return budget
