"""Common style of all figures: fonts, lines, colours, and the text of quantities.

The colours of Okabe and Ito (Color Universal Design, 2008) remain distinct under the common kinds
of colour blindness. Curves also differ in marker; more than eight curves also differ in line style.
More than ten wavelengths have the colours of viridis: a higher wavelength is lighter. So
neighbouring wavelengths remain distinct in grey print.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, to_hex

from opticoll._core import Fabric, Plan, records
from opticoll.errors import OpticollError
from opticoll.outputs.fabric_names import defaults, fabric_text
from opticoll.outputs.layout import uses_decimal_units
from opticoll.outputs.terminal_text import shortened

COLOURS = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#000000",  # black
    "#8C6D1F",  # brown, since Okabe and Ito's yellow is too pale for a line
)
CHANNEL_COLOURS = (*COLOURS[:6], "#000000", "#4400CC", "#5C3A00", "#990066")
"""Colours of few channels: the first of `COLOURS`, black, violet, brown and magenta.

For normal sight, protanopia and deuteranopia (matrices of Machado et al., 2009), any two of them
differ by at least 17.9 in CIELAB; eight colours of viridis differ by 11.8.
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
LINES = ("-", "--", "-.", ":")
LOADS = ("#CFE3F2", "#7DB5DC", "#2A7AB8", "#B0436E", "#5A0F3C")
INK = "#222222"
FAINT = "#D0D0D0"
GREY = "#808080"

# Any: the names that matplotlib accepts depend on its version.
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",  # included in matplotlib, so figures look alike everywhere
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "regular",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "hatch.linewidth": 0.6,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.08,
    "svg.hashsalt": "opticoll",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def rgb(colour: str) -> tuple[int, int, int]:
    """Returns the red, green and blue components of a colour, each from 0 to 255.

    >>> rgb("#0072B2")
    (0, 114, 178)
    """
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


@contextmanager
def applied() -> Iterator[None]:
    """Applies the common style within a `with` block, and then restores the caller's style."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def series(index: int) -> dict[str, Any]:
    """Returns colour, marker and line style of curve `index`, as keyword arguments of `plot`.

    Later curves are thinner and drawn above earlier curves, so curves that coincide are all
    visible.
    """
    return {
        **thinner(index),
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index // len(COLOURS) % len(LINES)],
    }


@functools.cache
def _recorded() -> tuple[str, ...]:
    """Returns the names of all algorithms in the order of their records, with `auto` at the end."""
    names = dict.fromkeys(record["name"] for record in records("algorithms"))
    return (*(name for name in names if name != "auto"), "auto")


def algorithm_look(spelled: str, variant: int = 0) -> dict[str, Any]:
    """Returns colour, marker and line style of an algorithm, the same in every figure.

    The index of the algorithm's record selects one of seven colours and a shade. Specifications of
    the same algorithm (`variant` 0, 1, ...) have this colour in common and differ in marker and
    line style. Only `auto` is black.
    """
    name = spelled.partition(":")[0]
    if name == "auto":
        return {"color": INK, "marker": "*", "linestyle": LINES[variant % len(LINES)]}
    names = _recorded()
    # A user algorithm has no record.
    place = names.index(name) if name in names else len(name)
    again = place // len(ALGORITHM_COLOURS)
    return {
        "color": shaded(
            ALGORITHM_COLOURS[place % len(ALGORITHM_COLOURS)], SHADES[again % len(SHADES)]
        ),
        "marker": MARKERS[(place + 3 * (again + variant)) % len(MARKERS)],
        "linestyle": LINES[(again + variant) % len(LINES)],
    }


def algorithm_looks(spellings: Iterable[str]) -> list[dict[str, Any]]:
    """Returns each algorithm's colour, marker and line style; the colour depends on the name."""
    variants: Counter[str] = Counter()
    looks = []
    for spelled in spellings:
        name = spelled.partition(":")[0]
        looks.append(algorithm_look(spelled, variants[name]))
        variants[name] += 1
    return looks


SHADES = (0.0, -0.45, 0.3, -0.7, 0.55)
"""Shades of repeated colours: the share of white to add, or of black if negative."""


def shaded(colour: str, share: float) -> str:
    """Mixes a colour with a share of white, or of black if the share is negative.

    >>> shaded("#0072B2", 0.5), shaded("#0072B2", -0.5)
    ('#80b8d8', '#003959')
    """
    towards = 255 if share > 0 else 0
    mixed = (round(part + abs(share) * (towards - part)) for part in rgb(colour))
    return "#" + bytes(mixed).hex()


def algorithm_name(spelled: str, collective: str | None = None) -> str:
    """Returns an algorithm's name in figures: its label, then its options in parentheses.

    >>> algorithm_name("relay_tree:pieces=2"), algorithm_name("mine:all_gather,skip=2")
    ('Relay tree (pieces=2)', 'mine:all_gather,skip=2')

    Four or more equal numbers in a row are written as a power:

    >>> algorithm_name("aggregated_trees:group=2,per_lightpath=2x3x3x3x3x4")
    'Aggregated trees (group=2,per_lightpath=2x3^4x4)'
    """
    name, _, options = spelled.partition(":")
    options = re.sub(
        r"(?<!\d)(\d+)(?:x\1(?!\d)){3,}", lambda run: f"{run[1]}^{run[0].count('x') + 1}", options
    )
    labels = _labels()
    label = labels.get((collective, name)) or labels.get((None, name), name)
    if not options:
        return label
    # A user algorithm has a function after the colon, not options.
    return f"{label} ({options})" if "=" in options and label != name else spelled


@functools.cache
def _labels() -> dict[tuple[str | None, str], str]:
    """Returns labels of algorithms by (collective, name); (None, name) is for all collectives."""
    labels: dict[tuple[str | None, str], str] = {}
    for record in records("algorithms"):
        label = str(record["label"] or record["name"])
        labels[record["collective"], record["name"]] = label
        labels.setdefault((None, record["name"]), label)
    return labels


def heading(plan: Plan) -> str:
    """Returns the first words of a plan's title: collective, algorithm and number of ranks.

    The title of a plan that the verifier rejects says so.
    """
    kind, count = plan.collective.kind, len(plan.verify())
    words = f"{kind}, {algorithm_name(plan.algorithm, kind)}, {counted(plan.fabric.ranks, 'rank')}"
    return f"NOT VALID ({counted(count, 'violation')}): {words}" if count else words


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, such as `1,024 ranks`.

    >>> counted(1024, "rank"), counted(1, "wavelength")
    ('1,024 ranks', '1 wavelength')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def thinner(index: int) -> dict[str, Any]:
    """Returns line width and marker size of curve `index`; later curves are thinner."""
    depth = min(index, 7) / 7
    return {"linewidth": 2.4 - 1.1 * depth, "markersize": 6.5 - 2.8 * depth}


ALGORITHM_COLOURS = tuple(colour for colour in COLOURS if colour != "#000000")
"""Colours of algorithms except `auto`, which is black."""

TITLE_OPTIONS = ("rate", "reconfiguration", "tuning", "slow_switch", "setup")
"""Options of fabrics that titles always state."""

WORDED_OPTIONS = ("ranks", "wavelengths", "rows", "columns")
"""Required options of fabrics that titles state elsewhere in words."""

OPTION_WORDS = {"dead": "dead wavelengths", "broken": "cuts"}
"""Words in titles for options of fabrics whose names are unclear there."""

MAX_VALUE_LENGTH = 40
"""Maximum number of characters of an option's value in a title."""


def named_fabric(spec: str) -> str:
    """Returns a fabric's text in the title of a figure: its family and the stated options.

    >>> named_fabric("torus:dims=4x4,rate=100Gb/s,latency=1us")
    'torus, dims 4x4, rate 100 Gb/s, latency 1 µs'
    """
    family = spec.partition(":")[0]
    summary = fabric_text(spec)
    return summary if summary != spec else ", ".join([family, *stated_options(spec)])


def conditions(spec: str) -> str:
    """Returns the options of a fabric that a figure's title states, as text.

    >>> conditions("wdm_ring:ranks=4,wavelengths=2,rate=40Gb/s,reconfiguration=25us")
    'rate 40 Gb/s, reconfiguration 25 µs'
    """
    return ", ".join(stated_options(spec))


def stated_options(spec: str) -> list[str]:
    """Returns the options that titles state: `TITLE_OPTIONS`, and options not at their default.

    Required options in `WORDED_OPTIONS` are left out, since titles state them in words.

    A fabric from a graph states its summary instead.

    >>> stated_options("wdm_ring:ranks=4,wavelengths=2,fibres=2,rate=40Gb/s,broken=0-1,dead=1")
    ['fibres 2', 'rate 40 Gb/s', 'cuts 0-1', 'dead wavelengths 1']
    """
    if (summary := fabric_text(spec)) != spec:
        return [summary]
    usual_options = defaults(spec.partition(":")[0])
    stated = dict(part.partition("=")[::2] for part in spec.partition(":")[2].split(",") if part)
    elsewhere = {name for name in WORDED_OPTIONS if usual_options.get(name, "") is None}
    usual = _usual(spec)
    return [
        f"{OPTION_WORDS.get(name, name.replace('_', ' '))} "
        f"{shortened(_spaced(value), MAX_VALUE_LENGTH)}"
        for name, value in stated.items()
        if name not in elsewhere and (name in TITLE_OPTIONS or value != usual.get(name))
    ]


def _usual(spec: str) -> dict[str, str]:
    """Returns the default value of each optional option of a fabric, by the option's name."""
    family, _, options = spec.partition(":")
    needed = [name for name, default in defaults(family).items() if default is None]
    required = [part for part in options.split(",") if part.partition("=")[0] in needed]
    try:
        usual = Fabric(f"{family}:{','.join(required)}").spec
    except OpticollError:
        return {}
    every = dict(part.partition("=")[::2] for part in usual.partition(":")[2].split(","))
    return {name: value for name, value in every.items() if name not in needed}


def _spaced(value: str) -> str:
    """Inserts a space between the number and the unit of a value."""
    return re.sub(r"(?<=[0-9])(?!x[0-9])(?=[A-Za-z])", " ", value).replace(" us", " µs")


def logarithmic(axes: Axes) -> None:
    """Makes the vertical axis logarithmic; labels down to 0.001 are decimal numbers."""

    def label(value: float, _: object) -> str:
        return f"{value:,g}" if value > 0.0009 else f"$10^{{{round(math.log10(value))}}}$"

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(label)


def label_between_decades(axes: Axes, text: Callable[[float], str]) -> None:
    """Labels minor ticks of a logarithmic vertical axis that spans less than two decades."""

    def label(value: float, _: object) -> str:
        low, high = axes.get_ylim()
        decades = math.log10(high / low)
        # The ticks at 2 and 5 times a power of ten divide a decade about evenly.
        leading = f"{value:e}"[0]
        wanted = decades < 0.6 or (decades < 2 and leading in "25")
        return text(value) if wanted else ""

    axes.yaxis.set_minor_formatter(label)
    axes.tick_params("y", which="minor", labelsize=8)


def spread(values: Sequence[float], apart: float) -> list[int]:
    """Returns the indices of values that get a label on a logarithmic axis.

    Two labelled values differ by at least the share `apart` of the axis' length. `values` are
    positive and ascending. The ends take precedence, then powers of two, then other values.
    """
    places = [math.log2(value) for value in values]
    least = apart * (places[-1] - places[0])
    order = sorted(
        range(len(values)),
        key=lambda index: (index not in (0, len(values) - 1), not places[index].is_integer()),
    )
    chosen: list[int] = []
    for index in order:
        if all(abs(places[index] - places[other]) >= least for other in chosen):
            chosen.append(index)
    return sorted(chosen)


def wavelength_colours(channels: int) -> Colormap:
    """Returns the colours of channels for matplotlib."""
    return ListedColormap(channel_colours(channels))


def channel_colours(channels: int) -> list[str]:
    """Returns the colours of channels; if there are few channels, the colours are easy to name."""
    return (
        list(CHANNEL_COLOURS[:channels]) if channels <= len(CHANNEL_COLOURS) else sequence(channels)
    )


def sequence(count: int) -> list[str]:
    """Returns `count` ordered colours from viridis, without its lightest colours."""
    shades = matplotlib.colormaps["viridis"]
    return [to_hex(shades(0.88 * place / max(count - 1, 1))) for place in range(count)]


def load_colours() -> Colormap:
    """Returns the colours of a link's load from 0 to 100 %, the same in every figure."""
    return LinearSegmentedColormap.from_list("load", LOADS)


def step_colours() -> Colormap:
    """Returns the colours of steps in their order."""
    return colormaps["viridis_r"]


def size_texts(sizes_bytes: Sequence[float]) -> list[str]:
    """Returns the texts of several sizes, all in binary units or all in decimal units."""
    decimal = uses_decimal_units(sizes_bytes)
    return [size_text(size, decimal) for size in sizes_bytes]


def size_text(size_bytes: float, decimal: bool = False) -> str:
    """Returns a size as text, such as `4 MiB`.

    The unit is decimal if `decimal`, or if no binary unit gives a number of at most four digits.
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if not decimal and size_bytes >= 1024**power and size_bytes % 1024 ** (power - 1) == 0:
            scaled = size_bytes / 1024**power
            if f"{scaled:.4g}" == f"{scaled:.10g}":
                return f"{scaled:.4g} {unit}"
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size_bytes >= 1000**power:
            return f"{size_bytes / 1000**power:.4g} {unit}"
    return f"{size_bytes:.10g} B"


UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def time_text(time_s: float) -> str:
    """Returns a time with three significant digits, such as `60.5 ms`."""
    for factor, unit in UNITS:
        if time_s >= 0.9995 * factor:
            digits = f"{time_s / factor:.3g}"
            return f"{float(digits):g} {unit}"
    return f"{time_s * 1e12:.3g} ps" if time_s > 0 else "0 s"


def time_unit(longest_s: float) -> tuple[float, str]:
    """Returns the unit of a time axis up to `longest_s`: the unit in seconds, and its name."""
    if longest_s == 0:
        return 1.0, "s"
    return next((known_unit for known_unit in UNITS if longest_s >= known_unit[0]), (1e-12, "ps"))


def unit_ps(longest_ps: float) -> tuple[int, str]:
    """Returns the unit of a time axis up to `longest_ps`: the unit in ps, and its name."""
    factor, unit = time_unit(longest_ps / 1e12)
    return round(factor * 1e12), unit
