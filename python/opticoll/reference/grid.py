"""The rules of the grid of tunable circuits, for the slow, readable verifier.

Nodes stand in rows and columns; each has a transceiver to the switch of its row and one to the
switch of its column. A switch sends what enters at a port on a wavelength out at one port, always
the same for the whole plan. Like `opticoll.reference` this shares nothing with the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PLANES = ("row", "column")


@dataclass(frozen=True)
class Grid:
    """What matters of a grid."""

    rows: int
    columns: int
    wavelengths: int
    plan: str
    """xor, cyclic or edge_colouring."""
    nodes: tuple[int, ...]
    """The node of each rank."""
    dead: frozenset[tuple[str, int, int]]
    """Plane, switch and port through which no light passes: of a transceiver or of the switch."""

    def place(self, rank: int, plane: str) -> tuple[int, int]:
        """The switch and the port of a rank in a plane."""
        row, column = divmod(self.nodes[rank], self.columns)
        return (row, column) if plane == "row" else (column, row)


@dataclass(frozen=True)
class Hop:
    """Light from one rank to another in a slot."""

    slot: int
    source: int
    destination: int
    plane: str
    wavelength: int


def read_grid(values: dict[str, str]) -> Grid:
    """A grid from the options of its spelling."""
    rows, columns = int(values["rows"]), int(values["columns"])
    plan = values.get("plan", "edge_colouring")
    longer = max(rows, columns)
    if rows * columns > 2**20 or int(values.get("ports", longer)) < longer:
        raise ValueError("no switch is so large")
    enough = (longer - 1).bit_length() if plan == "xor" else longer - 1
    nodes = list(range(rows * columns))
    if values.get("nodes", "all") != "all":
        ranges = [part.partition("-") for part in values["nodes"].split("+")]
        nodes = []
        for first, _, last in ranges:
            if not int(first) <= int(last or first) < rows * columns:
                raise ValueError(f"no nodes {first}-{last}")
            nodes += range(int(first), int(last or first) + 1)
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node is given twice")
    dead = set()
    for part in values.get("dead_transceivers", "").split("+"):
        node, _, plane = part.partition(".")
        if plane:
            row, column = divmod(int(node), columns)
            dead.add(("row", row, column) if plane == "row" else ("column", column, row))
    for part in values.get("dead_ports", "").split("+"):
        switch, _, port = part.partition(".")
        for plane in PLANES:
            if switch.startswith(plane):
                dead.add((plane, int(switch.removeprefix(plane)), int(port)))
    for plane, switch_number, port_number in dead:
        sides = (rows, columns) if plane == "row" else (columns, rows)
        if switch_number >= sides[0] or port_number >= sides[1]:
            raise ValueError(f"no port {port_number} of {plane} {switch_number}")
    return Grid(
        rows=rows,
        columns=columns,
        wavelengths=int(values.get("wavelengths", max(enough, 1))),
        plan=plan,
        nodes=tuple(sorted(nodes)),
        dead=frozenset(dead),
    )


def grid_problems(
    grid: Grid, slots_of: dict[int, range], ways: dict[int, list[Hop]]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the light of transfers: the kind and a sentence each.

    `ways` has the hops of each transfer, `slots_of` the slots of its step.
    """
    leaves_at: dict[tuple[str, int, int, int], int] = {}
    enters_at: dict[tuple[str, int, int, int], int] = {}
    tuned: dict[tuple[int, int, str], int] = {}
    heard: dict[tuple[int, int, str], int] = {}
    for transfer, hops in ways.items():
        before = None
        for hop in hops:
            says = f"slot {hop.slot}: transfer {transfer}"
            wrong = out_of_range(grid, slots_of[transfer], hop, before)
            if wrong:
                yield wrong[0], f"{says} {wrong[1]}"
                break
            before = hop.slot
            switch, entry = grid.place(hop.source, hop.plane)
            other, exit_ = grid.place(hop.destination, hop.plane)
            if switch != other or not joins(grid, hop.plane, hop.wavelength, entry, exit_):
                yield "path", f"{says}: its light does not go to rank {hop.destination}"
                continue
            for port in (entry, exit_):
                if (hop.plane, switch, port) in grid.dead:
                    yield "dead_port", f"{says} needs port {port} of {hop.plane} {switch}: dead"
            light = hop.wavelength
            if leaves_at.setdefault((hop.plane, switch, entry, light), exit_) != exit_:
                yield "switch_setting", f"{says}: its wavelength leads elsewhere too"
            if enters_at.setdefault((hop.plane, switch, exit_, light), entry) != entry:
                yield "collision", f"{says}: its wavelength comes from elsewhere too"
            if tuned.setdefault((hop.slot, hop.source, hop.plane), light) != light:
                yield "tuning", f"{says}: the laser of rank {hop.source} has another wavelength"
            if heard.setdefault((hop.slot, hop.destination, hop.plane), hop.source) != hop.source:
                yield "receiver", f"{says}: rank {hop.destination} hears another rank as well"


def out_of_range(grid: Grid, slots: range, hop: Hop, before: int | None) -> tuple[str, str] | None:
    """What leaves a hop, and those after it, out of the other rules."""
    ranks = range(len(grid.nodes))
    if hop.source not in ranks or hop.destination not in ranks:
        return "rank_range", "goes over a rank that does not exist"
    if hop.source == hop.destination:
        return "self_transfer", f"goes from rank {hop.source} to itself"
    if hop.wavelength >= grid.wavelengths:
        return "wavelength_range", f"is on wavelength {hop.wavelength}: beyond the laser"
    if before is not None and hop.slot <= before:
        return "relays", f"leaves rank {hop.source} before it is there"
    if before is not None and hop.slot not in slots:
        return "step_order", f"leaves rank {hop.source} after its step"
    return None


def joins(grid: Grid, plane: str, wavelength: int, entry: int, exit_: int) -> bool:
    """Whether the wavelength plan lets light from one port to another, where it is a formula."""
    if grid.plan == "xor":
        return entry ^ exit_ == 1 << wavelength
    if grid.plan == "cyclic":
        ports = grid.columns if plane == "row" else grid.rows
        return entry != exit_ and (exit_ - entry) % ports == wavelength + 1
    return True
