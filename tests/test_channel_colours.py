"""Colours of up to ten channels can be told apart, also by the colour-blind."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from opticoll.plot import style

# Sight with protanopia and deuteranopia, in linear RGB: Machado, Oliveira and Fernandes, A
# Physiologically-based Model for Simulation of Color Vision Deficiency, 2009, severity 1.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
# From linear sRGB to XYZ, IEC 61966-2-1.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, sight: str) -> NDArray[np.float64]:
    """Returns a colour as someone with this sight sees it, in CIELAB."""
    values = np.array(style.rgb(colour)) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(SIGHTS[sight]) @ linear, 0, 1)
    ratio = XYZ @ seen / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
def test_any_two_of_ten_colours_differ(sight: str) -> None:
    colours = style.channel_colours(10)
    assert len(set(colours)) == 10
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) > 17, (one, other)


@pytest.mark.parametrize("colour", style.channel_colours(10))
def test_no_colour_is_too_pale_for_a_thin_line(colour: str) -> None:
    # White has the lightness 100; the yellow of Okabe and Ito, which is left out, has 90.
    assert lab(colour, "normal")[0] < 75
