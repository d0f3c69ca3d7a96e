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
SIGNIFICANT = 0.2
INSIGNIFICANT = (
    "the poster calls differences insignificant beside LIN's lead, and names no limit; where LIN "
    "is twice as fast, a tenth of the others' time is a fifth of that lead"
)

ROUTERS = {
    "pipelined": "a router passes chunks on as a pipeline, as in CODES since October 2016",
    "occupies_port": "the delay of a router keeps its port busy, as in CODES until October 2016",
}
GATHER_RULES = {
    rule: f"{router}; minimal routes; packets of 512 B in one chunk each; buffers of 16 KiB, those "
    "of global links 32 KiB."
    for rule, router in ROUTERS.items()
}
SCATTER_RULES = {
    rule: f"{router}; minimal routes; packets of 512 B in chunks of 256 B, as in a configuration "
    "that CODES shipped in the poster's year."
    for rule, router in ROUTERS.items()
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
