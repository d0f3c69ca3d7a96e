"""What the poster leaves open and how each gap is read, and limits that several claims share."""

from __future__ import annotations

SLIGHT = 1.0
"""Percent."""

SLIGHTLY = (
    "the poster names no amount; the simulation has no random delays, so that 1 % is a difference "
    "and no noise"
)
LEAST = "the least there is, to within 1 %"
TWICE = "twice, printed with one digit"
SIGNIFICANT = 10.0
INSIGNIFICANT = (
    "the poster calls differences insignificant beside one of a factor of two, and names no limit; "
    "a tenth is far below that factor"
)

CUT = "chunks, buffers and routes of a configuration that CODES shipped in the poster's year"
RULES = {
    "pipelined": f"a router passes chunks on as a pipeline, as in CODES since October 2016; {CUT}.",
    "occupies_port": f"the delay of a router keeps its port busy, as in CODES until October 2016; "
    f"{CUT}.",
}
BRIEF = {"pipelined": "routers are pipelines", "occupies_port": "a router's delay occupies a port"}
NATURAL = "ranks are on the terminals in order."
SHUFFLED = "ranks are on the terminals in random order, seed 1."
ORDERS = {"natural": NATURAL, "shuffled": SHUFFLED}
BRIEF_ORDERS = {"natural": "ranks in order", "shuffled": "ranks in random order"}
SMART = (
    "the smart ring takes the groups in order, enters each where the link from the last one lands "
    "and leaves it where the link to the next one begins."
)
MINIMAL = "minimal routes."
BACKGROUND = "every terminal sends 2 KiB to a random one every 2 us."
BUFFERS_16 = "buffers of 16 KiB a channel of local and terminal links, 32 KiB of global links."
BUFFERS_64 = "buffers of 64 KiB a channel of local and terminal links, 128 KiB of global links."

PICTURE = "the figure is a picture; neither its axes nor its values are printed as numbers"


def both(*readings: str) -> str:
    """Several readings as one sentence."""
    return "; ".join(one.rstrip(".") for one in readings) + "."


def under(says: str, *brief: str) -> str:
    """What the poster says, and in brackets what tells this row from its neighbours."""
    return f"{says.rstrip('.')} ({', '.join(brief)})."
