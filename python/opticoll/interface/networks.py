"""Functions that simulate networks with random traffic: packets, bursts, and collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opticoll.interface.command import one

if TYPE_CHECKING:
    from typing import Unpack

    from opticoll.commands.congestion import CongestionRow
    from opticoll.commands.traffic import BurstRow, TrafficRow
    from opticoll.inputs.fabric_files import FabricLike
    from opticoll.inputs.settings import Settings


def traffic(
    fabric: FabricLike,
    pattern: str,
    *,
    size: str,
    period: str,
    messages: int,
    timeline: bool = False,
    **settings: Unpack[Settings],
) -> TrafficRow:
    """Simulates synthetic traffic packet by packet.

    Parameters
    ----------
    fabric
        An electrical fabric, its specification, its file, or a NetworkX graph.
    pattern
        Traffic pattern that determines the receivers of each rank, such as `uniform`.
    size, period
        Size of a message, and time from one message of a rank to its next, as texts with units.
    messages
        Number of messages that each rank sends.
    timeline
        Whether to record the load of links and the use of buffers over time.
    settings
        Settings of the packet simulator, as for `Plan.simulate`.

    Returns
    -------
    TrafficRow
        Delivered bytes, latencies and link use, with the `outcome`.

    Raises
    ------
    OpticollError
        The fabric, the pattern or a setting is unknown, or the packets reach a deadlock.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.traffic("torus:dims=4x4", "uniform", size="2KiB", period="1us", messages=10)
    >>> row.bytes_delivered, row.outcome.time_ps
    (327680, 10441830)
    """
    values = {"pattern": pattern, "bytes": size, "period": period, "messages": messages}
    row: TrafficRow = one("traffic", settings, fabric=fabric, timeline=timeline, jobs=1, **values)
    return row


def bursts(
    fabric: FabricLike, settings: Mapping[str, str] | None = None, *, threads: int = 1
) -> BurstRow:
    """Simulates a burst-switched network (OBS), in which random bursts may be blocked.

    Parameters
    ----------
    fabric
        The network with its wavelengths, such as
        `wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s`.
    settings
        Settings by name, with texts as values, such as `{"offered_load": "0.9", "converters":
        "full"}`.
    threads
        Number of threads that simulate replications in parallel; the result does not depend on it.

    Returns
    -------
    BurstRow
        The number of bursts and the burst loss ratio with confidence intervals, and the `outcome`.

    Raises
    ------
    FabricError
        The network is unknown or has no wavelengths.
    SimulationError
        A setting is unknown or out of range.

    Examples
    --------
    >>> import opticoll
    >>> ladder = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
    >>> row = opticoll.bursts(ladder, {"bursts": "1e4", "warm_up": "0"})
    >>> row.bursts, row.lost
    (10000, 0)
    """
    row: BurstRow = one("traffic", settings, fabric=fabric, simulator="burst", jobs=threads)
    return row


def congestion(
    collective: str,
    fabric: FabricLike,
    algorithm: str | None = None,
    *,
    size: str | int,
    ranks: int | None = None,
    copies: int = 1,
    root: int = 0,
    placement: str = "natural",
    offered_load: float = 0.0,
    settings: Mapping[str, str] | None = None,
    threads: int = 1,
) -> CongestionRow:
    """Simulates collectives over circuits that random bursts may block.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        The network with its wavelengths, as for `bursts`.
    algorithm
        A specification of an algorithm (default: the collective's default algorithm).
    size
        Size of the collective, in bytes or as text with a unit.
    ranks
        Number of ranks of each collective (default: as many as the hosts allow).
    copies
        Number of collectives that run at the same time, each on its own hosts.
    root
        The root rank of a broadcast, reduce, gather or scatter.
    placement
        Placement of ranks on hosts: `natural`, `spread` or `best`.
    offered_load
        Offered load of bursts per host, in Erlang; 0 means no bursts.
    settings
        Settings of circuits and bursts by name, with texts as values, such as `{"ports": "2"}`.
    threads
        Number of threads that simulate replications in parallel; it does not change the result.

    Returns
    -------
    CongestionRow
        The mean time in seconds with its confidence interval, and the `outcome`.

    Raises
    ------
    OpticollError
        A name or a setting is unknown, or the network has too few hosts for the ranks.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.congestion(
    ...     "all_gather",
    ...     "wdm_ladder:rungs=5,wavelengths=4,rate=10Gb/s,latency=0s",
    ...     "ring",
    ...     size="1MB",
    ...     settings={"ports": "2", "replications": "1"},
    ... )
    >>> row.verified, row.time_s
    (True, 0.0181)
    """
    row: CongestionRow = one(
        "congestion",
        collective=collective,
        fabric=fabric,
        algorithm=algorithm,
        size=size,
        ranks=ranks,
        collectives=copies,
        root=root or None,
        placement=placement,
        offered_load=offered_load,
        bursts=settings,
        jobs=threads,
    )
    return row
