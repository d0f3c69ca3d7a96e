"""The rules that plans on every fabric obey; each family of fabrics adds the rules of its light."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opticoll.reference.plan import Plan, Problem, TooLarge, Transfer, Transfers
from opticoll.reference.text import read

MAX_CHECKED_CHUNKS = 10_000_000
"""Maximum number of chunks at all ranks plus delivered chunks; more take minutes and gigabytes."""


def verify_text(
    text: str,
    wiring: Sequence[tuple[int, int, bool]] = (),
    routes: Mapping[tuple[int, int], Sequence[int]] | None = None,
) -> list[str]:
    """Returns one sentence for each problem of the plan in `text`.

    `wiring` are the links of an electrical fabric, as (start vertex, end vertex, True if the link
    also leads back). If routes name links, the plan can be proved only with `wiring`. `routes` are
    the links of the fabric's routes, by (source, destination). Multicasts and aggregations can be
    proved only with both.

    Raises:
        NotAPlan: the text is no plan.
        TooLarge: this verifier would need minutes for the plan.
    """
    plan = read(text)
    plan.fabric.wiring = wiring
    plan.fabric.routes = routes or {}
    return [problem.sentence for problem in verify(plan)]


def verify(plan: Plan) -> list[Problem]:
    """Returns the problems of a plan; the plan is proved if the list is empty.

    Raises:
        TooLarge: this verifier would need minutes for the plan.
    """
    chunks, ranks = plan.collective.chunks, plan.collective.ranks
    delivered = sum(transfer.count for transfer in plan.transfers)
    if chunks * ranks + delivered > MAX_CHECKED_CHUNKS:
        raise TooLarge(
            f"{chunks} chunks of {ranks} ranks, and {delivered} chunks delivered, are more than "
            f"{MAX_CHECKED_CHUNKS} to look at"
        )
    sound: Transfers = {}
    problems = []
    for index, transfer in enumerate(plan.transfers):
        wrong = list(malformed(plan, transfer))
        if not wrong:
            sound[index] = transfer
        wrong += [*plan.fabric.wrong_light(transfer.light), *wrong_action(plan, transfer)]
        says = f"slot {transfer.slot}: transfer {index}"
        problems += [Problem(kind, f"{says} {sentence}") for kind, sentence in wrong]
    problems += plan.fabric.wrong_slots(plan, sound)
    problems += plan.fabric.wrong_groups(plan, sound)
    problems += combined(plan, sound) if plan.collective.combines else passed_on(plan, sound)
    problems += false_claims(plan, sound)
    return problems


def malformed(plan: Plan, transfer: Transfer) -> Iterator[Problem]:
    """Yields the problems that prevent a check of the transfer by the other rules."""
    if transfer.source == transfer.destination:
        yield Problem("self_transfer", f"ends at rank {transfer.source}, where it starts")
    if transfer.count == 0 or transfer.chunks()[-1] >= plan.collective.chunks:
        yield Problem("chunk_range", "carries no chunks, or chunks that do not exist")


def wrong_action(plan: Plan, transfer: Transfer) -> Iterator[Problem]:
    if transfer.adds and not plan.collective.combines:
        yield Problem("wrong_action", "reduces in a collective that combines nothing")


def deliveries(plan: Plan, sound: Transfers) -> Iterator[list[tuple[int, Transfer, int]]]:
    """Yields for each step a list with (index of the transfer, transfer, chunk) for each chunk.

    Data advance by steps, not by slots. A transfer sends the data that its source has when the step
    begins. Data that arrive in a step can be sent from the next step on.
    """
    steps: list[list[tuple[int, Transfer, int]]] = [[] for _ in plan.steps]
    for index, transfer in sound.items():
        chunks = [(index, transfer, chunk) for chunk in transfer.chunks()]
        steps[plan.step_of(transfer.slot)] += chunks
    yield from steps


def passed_on(plan: Plan, sound: Transfers) -> Iterator[Problem]:
    """Yields chunks that are sent but not available, that arrive twice, or that never arrive."""
    every_chunk = range(plan.collective.chunks)
    available = {(rank, chunk) for chunk in every_chunk for rank in plan.collective.before(chunk)}
    for step in deliveries(plan, sound):
        arriving = {(transfer.destination, chunk) for _, transfer, chunk in step}
        arrived: set[tuple[int, int]] = set()
        for index, transfer, chunk in step:
            says = f"slot {transfer.slot}: transfer {plan.name(index)}"
            if (transfer.source, chunk) not in available:
                forwards = (transfer.source, chunk) in arriving
                when = "before the end of the step" if forwards else "by then"
                yield Problem(
                    "same_step_forward" if forwards else "not_held",
                    f"{says} sends chunk {chunk}, which its source does not hold {when}",
                )
            if (transfer.destination, chunk) in available | arrived:
                yield Problem(
                    "duplicate",
                    f"{says} brings chunk {chunk} to a rank that has it or gets it anyway",
                )
            # Count the chunk as delivered, so that one mistake is reported only once.
            arrived.add((transfer.destination, chunk))
        available |= arrived
    for chunk in every_chunk:
        for rank in sorted(plan.collective.after(chunk)):
            if (rank, chunk) not in available:
                yield Problem("missing", f"at the end rank {rank} does not hold chunk {chunk}")


def combined(plan: Plan, sound: Transfers) -> Iterator[Problem]:
    """Yields contributions that are counted twice, or that are missing at the end.

    The content of a chunk at a rank is the set of ranks whose contributions it contains. At first
    this set contains only the rank itself. A reduction adds the sent set to the receiver's set. A
    copy replaces the receiver's set by the sent set. A copied set must contain the receiver's set
    and at least one other rank.

    In a barrier, a signal (a reduction) may repeat contributions if it also brings a new one. No
    rank may send two signals to the same rank in a step. In other collectives, a reduction must not
    repeat a contribution.
    """
    ranks, chunks = range(plan.collective.ranks), range(plan.collective.chunks)
    content = {(rank, chunk): frozenset({rank}) for rank in ranks for chunk in chunks}
    for step in deliveries(plan, sound):
        at_start = dict(content)
        arrivals: dict[tuple[int, int], bool] = {}
        signals: set[tuple[int, int, int]] = set()
        for index, transfer, chunk in step:
            says = f"slot {transfer.slot}: transfer {plan.name(index)}"
            place = transfer.destination, chunk
            sent, had = at_start[transfer.source, chunk], content[place]
            if plan.collective.overlaps and transfer.adds:
                signal = transfer.source, transfer.destination, chunk
                if sent <= at_start[place] or signal in signals:
                    yield Problem("duplicate", f"{says} tells its receiver nothing new")
                signals.add(signal)
            if place in arrivals and not (transfer.adds and arrivals[place]):
                yield Problem("copy_conflict", f"{says} is not alone, and one of those is a copy")
                continue  # The first arrival counts.
            arrivals[place] = transfer.adds
            if transfer.adds:
                if sent & had and not plan.collective.overlaps:
                    yield Problem(
                        "double_reduction",
                        f"{says} adds to chunk {chunk} what is in it: {sorted(sent & had)}",
                    )
                content[place] = had | sent
            else:
                if had - sent:
                    yield Problem(
                        "lost_contribution",
                        f"{says} copies over chunk {chunk} and loses {sorted(had - sent)}",
                    )
                elif had == sent:
                    yield Problem("duplicate", f"{says} copies chunk {chunk} over the same")
                content[place] = sent
    for chunk in chunks:
        for rank in sorted(plan.collective.after(chunk)):
            lacking = set(ranks) - content[rank, chunk]
            if lacking:
                yield Problem(
                    "missing", f"at the end rank {rank} holds chunk {chunk} without {lacking}"
                )


def false_claims(plan: Plan, sound: Transfers) -> Iterator[Problem]:
    """Yields false statements of the plan about itself; `paper_steps` is not checked."""
    claims = plan.claims
    if "neighbours_only" in claims:
        for index, transfer in sound.items():
            if abs(transfer.source - transfer.destination) not in (1, plan.collective.ranks - 1):
                yield Problem("claim", f"transfer {plan.name(index)} goes to no neighbour")
    if claims.get("schedule_steps", len(plan.steps)) != len(plan.steps):
        yield Problem("claim", f"{claims['schedule_steps']} steps claimed, not {len(plan.steps)}")
    sent = [0] * plan.collective.ranks
    for transfer in sound.values():
        sent[transfer.source] += transfer.count
    if claims.get("chunks_sent_per_rank", max(sent)) != max(sent):
        yield Problem(
            "claim", f"{claims['chunks_sent_per_rank']} chunks per rank claimed, not {max(sent)}"
        )
