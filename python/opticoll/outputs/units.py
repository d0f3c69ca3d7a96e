"""Types of numbers in rows: the unit of a number, its text, and the range of its values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from opticoll._core import format_size
from opticoll.outputs.layout import format_rate, human_energy, human_seconds, human_time


@dataclass(frozen=True)
class Unit:
    """Unit of a number: its name, a function that formats values, and the range of values."""

    name: str = ""
    text: Callable[[Any], str] = str
    least: float | None = 0
    most: float | None = None


Seconds = Annotated[float, Unit("s", human_seconds)]
SignedSeconds = Annotated[float, Unit("s", human_seconds, least=None)]
"""Time in seconds that may be negative, such as the lower end of a confidence interval."""
Picoseconds = Annotated[int, Unit("ps", human_time)]
Bytes = Annotated[int, Unit("B", format_size)]
BitsPerSecond = Annotated[int, Unit("bit/s", format_rate)]
GigabytesPerSecond = Annotated[float, Unit("GB/s", "{:.4g} GB/s".format)]
Joules = Annotated[float, Unit("J", human_energy)]
Decibels = Annotated[float, Unit("dB", "{:.6g}".format, least=None)]
DecibelMilliwatts = Annotated[float, Unit("dBm", "{:.6g}".format, least=None)]
Count = Annotated[int, Unit()]
Positive = Annotated[int, Unit(least=1)]
Load = Annotated[float, Unit("Erlang", "{:g}".format)]
Number = Annotated[float, Unit("", "{:.4g}".format)]
Fraction = Annotated[float, Unit("1", "{:.3g}".format, most=1)]
Utilisation = Annotated[float, Unit("1", "{:.1%}".format)]
"""Share between 0 and 1, which may exceed 1 slightly due to rounding."""
Share = Annotated[float, Unit("1", "{:.1%}".format, most=1)]
