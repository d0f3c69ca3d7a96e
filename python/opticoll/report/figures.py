"""Figures of a page as Vega-Lite specifications, and the same figures as SVG.

`page/figures.json` contains templates of figures with gaps, such as `$x`. The function `channel`
describes a column, and its result fills the gaps. If a user chooses other columns on the page, the
page's script fills the gaps in the same way.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from opticoll.errors import needed
from opticoll.outputs.layout import READINGS
from opticoll.plot import style
from opticoll.report.table import LAST, Shown, ShownTable

Spec = dict[str, Any]

SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",
    "<": "triangle-left",
    "*": "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z",
}
"""Vega's names of matplotlib's markers."""

DASHES = {"-": [1, 0], "--": [7, 3], "-.": [7, 3, 2, 3], ":": [2, 3]}

INTERACTIVE_KEYS = ("params", "cursor", "tooltip")
"""Keys of interactive parts, which figures in files omit."""

ENDINGS = (".svg", ".png", ".pdf")
"""Endings of the files of figures."""

PNG_SCALE = 2
"""Number of pixels of a PNG per point of a figure."""

LABELS = {
    "s": "datum.value === 0 ? '0' : replace(format(datum.value, '~s'), 'µ', 'µ') + 's'",
    "B": (
        "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' : "
        "datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB' : "
        "datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' : datum.value + ' B'"
    ),
    "bit/s": "datum.value === 0 ? '0' : format(datum.value, '~s') + 'b/s'",
    "%": "format(datum.value, '~%')",
    "": "datum.value >= 1 ? format(datum.value, ',~r') : format(datum.value, '~g')",
}
"""Vega expressions for the numbers on axes, by unit."""

CAPTION: Spec = {
    "anchor": "start",
    "color": "#555555",
    "fontSize": 11,
    "fontWeight": "normal",
    "orient": "bottom",
    "offset": 8,
}
"""Properties of the caption below a figure."""

MIN_LOG_RATIO = 10
"""Minimum ratio of the largest to the smallest value for a logarithmic axis by default."""

MIN_LOG2_RATIO = 4
"""Minimum ratio for a logarithmic axis if three or more values are all powers of two."""

PREFERRED_AXES = ("size_bytes", "wavelengths", "ranks")
"""Columns that are preferred as the axis among columns with equally many values."""

MAX_TICKS = 10
"""Maximum number of labels of a logarithmic axis in powers of two."""

PREFERRED_COLOURS = ("algorithm", "fabric", "policy")
"""Columns that are preferred for colours."""

MAX_PANELS = 8
"""Maximum number of values of a column that splits the figure into panels by default."""

EDGE_PIXELS = 6
"""Minimum number of pixels between marks and the edge of a figure, so that no mark is cut."""

MAX_DASHES = len(DASHES)
"""Maximum number of values that different dashes can distinguish."""

MAX_COLOURS = 32
"""Maximum number of values that different colours distinguish by default."""

FLUSH_PIXELS = 14
"""Number of pixels at the end of an axis; labels there move inwards, since panels are close."""

RESOLVE: Spec = {"axis": {"x": "independent"}}
"""Gives each panel an x axis, since a shared axis may stand where the last row has no panel."""

CONFIG: Spec = {
    "font": "DejaVu Sans, Verdana, sans-serif",
    "background": "white",
    "axis": {"gridColor": "#E4E4E4", "labelFontSize": 11, "titleFontSize": 12},
    "axisX": {"labelFlush": FLUSH_PIXELS},
    "legend": {"labelFontSize": 11, "titleFontSize": 11, "labelLimit": 260, "symbolSize": 70},
    "header": {"labelFontSize": 11, "titleFontSize": 11},
    "view": {"stroke": "#B0B0B0"},
    "range": {"heatmap": {"scheme": "viridis"}},
}


@cache
def templates() -> dict[str, Spec]:
    """Returns the templates of figures by name."""
    text = files("opticoll.report").joinpath("page", "figures.json").read_text(encoding="utf-8")
    all_templates: dict[str, Spec] = json.loads(text)
    return all_templates


def fill(template: Any, gaps: Spec) -> Any:
    """Fills the gaps of a template, and removes entries whose gap is None."""
    if isinstance(template, str) and template.startswith("$"):
        return gaps[template[1:]]
    if isinstance(template, list):
        filled = [fill(item, gaps) for item in template]
        return [item for item in filled if item is not None]
    if isinstance(template, dict):
        pairs = {name: fill(value, gaps) for name, value in template.items()}
        return {name: pair for name, pair in pairs.items() if pair is not None}
    return template


def channel(column: Shown) -> Spec:
    """Returns a column's properties in a figure: title, type, scale, colours, markers, dashes."""
    traits: Spec = {
        # Names of fields must be identifiers, since expressions read other characters as operators.
        "field": re.sub(r"\W", lambda sign: f"_{ord(sign[0]):x}_", column.name),
        "title": column.heading,
        "type": "quantitative" if column.number else "nominal",
    }
    if column.number:
        some = [value for value in column.values if value is not None]
        positive = min(some) > 0
        traits["labels"] = LABELS.get(column.unit, LABELS[""])
        traits["base"] = 2 if positive and all(_is_power_of_two(value) for value in some) else 10
        traits["positive"] = positive
        traits["wide"] = positive and max(some) / min(some) >= (
            MIN_LOG2_RATIO if traits["base"] == 2 and len(set(some)) > 2 else MIN_LOG_RATIO
        )
        traits["ticks"] = _ticks(sorted(set(some)), traits["base"]) if positive else None
    if len(column.distinct) <= MAX_COLOURS or column.name in ("algorithm", "chosen"):
        traits |= _looks(column)
    return traits


def _ticks(values: list[float], base: int) -> list[float]:
    """Returns the labels of a logarithmic axis: powers of two, or 1, 2 and 5 times 10^n."""
    if base == 2 and len(values) <= MAX_TICKS:
        return values
    if base == 2:
        return values[:: -(-len(values) // MAX_TICKS)]
    first, last = math.floor(math.log10(values[0])), math.ceil(math.log10(values[-1]))
    leading = (1, 2, 5) if last - first <= 3 else (1,)
    # `float("1e-06")` is the nearest number to 10^-6, but `10.0 ** -6` is not.
    ticks = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in leading]
    return [tick for tick in ticks if values[0] <= tick <= values[-1]]


def _is_power_of_two(value: float) -> bool:
    return value == int(value) and int(value) & (int(value) - 1) == 0


def _looks(column: Shown) -> Spec:
    """Returns the colour, marker and dashes of each value of a column.

    An algorithm has the same colour in all figures.
    """
    values = [value for value in column.distinct if value is not None]
    if column.number:
        values = sorted(values)
        shades = style.sequence(len(values))
        looks = [
            {"color": shade, "marker": style.MARKERS[at % len(style.MARKERS)], "linestyle": "-"}
            for at, shade in enumerate(shades)
        ]
    elif column.name in ("algorithm", "chosen"):
        looks = style.algorithm_looks(map(str, values))
    else:
        looks = [style.series(at) for at in range(len(values))]
    return {
        "domain": values,
        "colours": [look["color"] for look in looks],
        "shapes": [SHAPES[look["marker"]] for look in looks],
        "dashes": [DASHES[look["linestyle"]] for look in looks],
    }


def first_choice(table: ShownTable) -> Spec | None:
    """Returns the default columns of a table's figure; None if the rows do not differ."""
    varied = [column for column in table.columns if column.asked and column.name != "specification"]
    rows = range(len(table))
    fabrics = [column for column in varied if column.name == "fabric" and not column.number]
    # A number that depends on the fabric, such as its rate, is no axis.
    axes = [
        column
        for column in varied
        if column.number
        and len(column.distinct) > 1
        and (
            (column.name in PREFERRED_AXES and None not in column.distinct)
            or not follows(column, fabrics, rows)
        )
    ]
    axes.sort(key=lambda column: (-len(column.distinct), column.name not in PREFERRED_AXES))
    results = [column for column in table.columns if column.number and not column.asked]
    times = [
        result for result in results if result.unit == "s" and not result.name.startswith("bound_")
    ]
    if len(table) < 2 or not results:
        return None
    y = (times or results)[0]
    others = [result for result in results if result is not y]
    texts = [
        column
        for column in varied
        if not column.number and column.name != "chosen" and 1 < len(column.distinct) <= MAX_COLOURS
    ]
    order = {name: place for place, name in enumerate(PREFERRED_COLOURS)}
    texts.sort(key=lambda column: order.get(column.name, len(order)))
    x = (axes or (fabrics if len(texts) > 1 else []) or others or [y])[0]
    texts = [text for text in texts if text is not x]
    apart = [x, *texts[:1]]
    panels = [
        text.name
        for text in [*texts[1:], *axes[1:]]
        if len(text.distinct) <= MAX_PANELS and None not in text.distinct
        if not follows(text, apart, range(len(table)))
    ]
    colour, facet = texts[0].name if texts else "", panels[0] if panels else ""
    return {
        "kind": "lines" if axes else "points",
        "x": x.name,
        "y": y.name,
        "colour": colour,
        "facet": facet,
        "held": _held(table, [x.name, colour, facet]),
        "x_log": bool(axes) and channel(x)["wide"],
        "y_log": channel(y)["wide"],
    }


def _held(table: ShownTable, used: list[str]) -> dict[str, Any]:
    """Returns a fixed value for each varied column that the figure does not show.

    The figure contains only rows with these values. The fixed value is the largest number or the
    last text. Rows without a value, such as the policy of a fat tree, stay in the figure. Columns
    that depend on columns in the figure, such as an option of the fabrics, are not fixed.
    """
    rows = list(range(len(table)))
    by_name = {other.name: other for other in table.columns}
    fixed: dict[str, Any] = {}
    for column in table.columns:
        if not column.asked or column.name in (*used, "specification", "chosen"):
            continue
        if follows(column, [by_name[name] for name in used if name], rows):
            continue
        some = [column.values[row] for row in rows if column.values[row] is not None]
        fixed[column.name] = max(some) if column.number else some[-1]
        rows = [row for row in rows if column.values[row] in (fixed[column.name], None)]
    return fixed


def follows(column: Shown, others: Sequence[Shown], rows: Sequence[int]) -> bool:
    """Returns whether the values of the columns `others` determine the column's value in a row."""
    value_of: dict[tuple[Any, ...], Any] = {}
    return all(
        value_of.setdefault(tuple(other.values[row] for other in others), column.values[row])
        == column.values[row]
        for row in rows
    )


def specification(table: ShownTable, choice: Spec, width: int = 300, columns: int = 2) -> Spec:
    """Returns the figure of a table, with data, for a choice of columns."""
    by_name = {column.name: column for column in table.columns}
    channels = {name: channel(value) for name, value in by_name.items()}
    used = [choice[role] for role in ("x", "y", "colour", "facet") if choice[role]]
    rows = [
        row
        for row in range(len(table))
        if all(by_name[name].values[row] in (value, None) for name, value in choice["held"].items())
    ]
    axes = [by_name[choice[role]] for role in ("x", "colour", "facet") if choice[role]]
    apart = [
        column.name
        for column in table.columns
        if column.asked and column.name not in used and not follows(column, axes, rows)
    ]
    fields = list(dict.fromkeys([*used, *apart]))
    values = [
        {channels[name]["field"]: by_name[name].values[row] for name in fields} for row in rows
    ]
    free = [by_name[name] for name in apart if _is_dashed(by_name[name])]
    dashed = min(free, key=lambda column: column.number).name if free else None
    gaps = _gaps(channels, choice, [channels[name]["field"] for name in apart], dashed)
    facet = channels.get(choice["facet"])
    if facet is not None:
        values = _repeated_in_panels(values, facet["field"])
    spec = whole(choice["kind"], gaps, facet, values, width, columns)
    caption = _caption(table, choice, rows)
    return {**spec, "title": {"text": caption, **CAPTION}} if caption else spec


def _caption(table: ShownTable, choice: Spec, rows: Sequence[int]) -> list[str]:
    """Returns a caption on fixed values and omitted rows, as does `captionOf` in the page."""
    used = [choice[role] for role in ("x", "y", "colour", "facet")]
    fixed_columns = [
        column
        for column in table.columns
        if column.name in choice["held"] and column.name not in used
    ]
    used += [*LAST, *(column.name for column in fixed_columns)]
    lines = [
        f"{column.heading}: {READINGS.get(column.unit, str)(choice['held'][column.name])}"
        for column in fixed_columns
    ]
    (across,) = (column for column in table.columns if column.name == choice["x"])
    drawn = [row for row in rows if across.values[row] is not None]
    level: list[int] = []
    if choice["kind"] == "lines":
        level, drawn = [row for row in rows if across.values[row] is None], list(rows)
    if len(drawn) < len(table):
        lines.append(f"{len(drawn)} of {len(table)} rows")
    texts = [
        column
        for column in table.columns
        if column.asked and not column.number and column.name not in used
    ]
    left_out = [
        (text, [value for value in text.distinct if value not in _at(text, drawn)])
        for text in texts
    ]
    dashed = [(text, _at(text, level)) for text in texts if len(text.distinct) > 1]
    for label, named in (("left out", left_out), ("dashed across", dashed)):
        complete = ((column, values) for column, values in named if values and None not in values)
        for text_column, values in itertools.islice(complete, 1):
            lines.append(f"{label}: {text_column.heading.lower()} {', '.join(map(str, values))}")
    return lines


def _at(column: Shown, rows: Iterable[int]) -> list[Any]:
    """Returns the distinct values of a column in `rows`, which are indices of rows."""
    return list(dict.fromkeys(column.values[row] for row in rows))


def _is_dashed(column: Shown) -> bool:
    """Returns whether dashes can distinguish the values of a column, because they are few."""
    some = {*column.values} - {None}
    return column.name not in LAST and 1 < len(some) <= MAX_DASHES


def _repeated_in_panels(values: Sequence[Spec], field: str) -> list[Spec]:
    """Returns the marks of a figure, and repeats a mark without panel in all panels.

    `field` names the column that splits the figure into panels.
    """
    panels = list(dict.fromkeys(value[field] for value in values if value[field] is not None))
    return [
        {**value, field: panel}
        for value in values
        for panel in (panels if value[field] is None and panels else [value[field]])
    ]


def whole(
    kind: str, gaps: Spec, facet: Spec | None, values: Sequence[Any], width: int, columns: int
) -> Spec:
    """Returns a complete figure with its data; `facet`, if any, splits it into panels."""
    view = fill(templates()[kind], gaps)
    size = {"width": width, "height": round(0.62 * width)}
    head: Spec = {"data": {"values": list(values)}, "config": CONFIG}
    if facet is None:
        return {**head, **view, **size}
    panels = {"field": facet["field"], "title": facet["title"], "type": "nominal"}
    if "labels" in facet:
        panels["header"] = {"labelExpr": facet["labels"]}
    parts = {"facet": panels, "columns": columns, "resolve": RESOLVE, "spec": {**view, **size}}
    return {**head, **parts}


def _gaps(channels: dict[str, Spec], choice: Spec, apart: list[str], dashed: str | None) -> Spec:
    """Returns the values that fill a template's gaps, as does `gapsOf` in the page.

    `dashed` is the column whose values differ in dashes and markers. `apart` are the fields of
    columns whose values are drawn separately.
    """
    x, y, colour = (channels.get(choice[role]) for role in ("x", "y", "colour"))
    assert x is not None
    assert y is not None
    more = {"x": choice.get("x_more", False), "y": choice.get("y_more", False)}
    sort = [
        {"field": x["field"], "order": "descending" if more["x"] else "ascending"},
        {"field": y["field"], "order": "descending" if more["y"] else "ascending"},
    ]
    apart_by = [channels[choice["facet"]]["field"]] if choice["facet"] else []
    return {
        "x": _axis(x, choice["x_log"]),
        "y": _axis(y, choice["y_log"]),
        "column": {**_axis(x, False), "type": "ordinal", "scale": {}},
        "row": {**_axis(colour or x, False), "type": "ordinal", "scale": {}},
        "shade": {
            "field": "least",
            "type": "quantitative",
            "title": f"Least {y['title'].lower()}",
            "scale": {"type": "log" if choice["y_log"] else "linear", "scheme": "viridis"},
            "legend": {"labelExpr": y.get("labels", LABELS[""])},
        },
        "least": {
            "aggregate": [
                {"op": "min", "field": y["field"], "as": "least"},
                {"op": "argmin", "field": y["field"], "as": "best"},
            ],
            "groupby": list(
                dict.fromkeys(
                    channels[choice[role]]["field"]
                    for role in ("x", "colour", "facet")
                    if choice[role]
                )
            ),
        },
        "there": {"filter": f"isValid(datum['{x['field']}']) && isValid(datum['{y['field']}'])"},
        # A row without an x value, such as one on a fat tree over wavelengths, is a horizontal
        # line.
        "everywhere": {
            "filter": f"!isValid(datum['{x['field']}']) && isValid(datum['{y['field']}'])"
        },
        "colour": _key(colour, "colours"),
        "shape": _key(colour, "shapes"),
        "dash": _dashes(channels[dashed]) if dashed else _key(colour, "dashes"),
        "form": _key(channels[dashed] if dashed else colour, "shapes"),
        "detail": [{"field": name} for name in apart],
        "running": {
            "sort": sort,
            "window": [
                {"op": "max" if more["y"] else "min", "field": y["field"], "as": "best_y"},
                {"op": "row_number", "as": "place"},
            ],
            "groupby": apart_by,
        },
        "lagging": {
            "sort": sort,
            "window": [{"op": "lag", "field": "best_y", "as": "best_before"}],
            "groupby": apart_by,
        },
        "on_front": {
            "filter": (
                f"datum.place === 1 || datum['{y['field']}'] {'>' if more['y'] else '<'} "
                "datum.best_before"
            )
        },
        "stair": "step-before" if more["x"] else "step-after",
    }


def _axis(traits: Spec, log: bool) -> Spec:
    """Returns the properties of an axis for a column with the given traits."""
    axis: Spec = {"field": traits["field"], "title": traits["title"], "type": traits["type"]}
    if traits["type"] == "quantitative":
        axis["axis"] = {
            "labelExpr": traits["labels"],
            "labelOverlap": "greedy",
            "labelSeparation": 6,
        }
        axis["scale"] = {"zero": False, "padding": EDGE_PIXELS}
        if log:
            axis["scale"] = {
                "type": "log",
                "base": traits["base"],
                "nice": False,
                "padding": EDGE_PIXELS,
            }
            axis["axis"]["values"] = traits["ticks"]
    elif "domain" in traits:
        # Sort values in the order in which the user listed them.
        axis |= {"sort": traits["domain"], "axis": {"labelAngle": 0}}
    return axis


def _key(traits: Spec | None, look: str) -> Spec | None:
    """Returns the part of a figure that shows a column by colours, shapes or dashes.

    `look` is "colours", "shapes" or "dashes". The result is None without a column (`traits`), and
    for shapes and dashes of a column with too many values.
    """
    if traits is None:
        return None
    if "domain" not in traits:
        shaded = {"field": traits["field"], "title": traits["title"], "type": traits["type"]}
        return shaded if look == "colours" else None
    return {
        "field": traits["field"],
        "title": traits["title"],
        "type": "nominal",
        "scale": {"domain": traits["domain"], "range": traits[look]},
        **({"legend": {"labelExpr": traits["labels"]}} if "labels" in traits else {}),
    }


def _dashes(traits: Spec) -> Spec:
    """Returns the part of a figure that shows a column by dashes."""
    domain = traits["domain"]
    key = _key(traits, "dashes")
    assert key is not None
    return {**key, "scale": {"domain": domain, "range": list(DASHES.values())[: len(domain)]}}


def svg(spec: Spec) -> str:
    """Renders a figure as SVG.

    Raises
    ------
    UsageError
        The package that draws is not installed.
    """
    text: str = library().vegalite_to_svg(_still(spec))
    return text


def drawn(spec: Spec, ending: str) -> bytes:
    """Renders a figure as the bytes of a file; `ending` is `.svg`, `.png` or `.pdf`.

    Raises
    ------
    UsageError
        The package that draws is not installed.
    """
    if ending == ".svg":
        return svg(spec).encode()
    convert = library().vegalite_to_pdf if ending == ".pdf" else library().vegalite_to_png
    content: bytes = convert(_still(spec), scale=1 if ending == ".pdf" else PNG_SCALE)
    return content


def library() -> Any:
    """Returns the package that contains Vega."""
    return needed("vl_convert", "pages are made by", "report", "vl-convert-python")


def _still(spec: Any) -> Any:
    """Returns a figure without its interactive parts."""
    if isinstance(spec, list):
        return [_still(item) for item in spec]
    if isinstance(spec, dict):
        return {name: _still(value) for name, value in spec.items() if name not in INTERACTIVE_KEYS}
    return spec
