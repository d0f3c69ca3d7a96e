"""Plans as GOAL and time-independent traces: what files hold, and the times of their replays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import opticoll
from opticoll.errors import OpticollError
from opticoll.outputs.records import record_rows
from support import Run, some_of

KINDS = [one.name for one in record_rows("collectives") if one.name != "barrier"]
CHUNK = 4096
"""Bytes of a chunk."""


class Message(NamedTuple):
    step: int
    source: int
    destination: int
    size: int


class Operation(NamedTuple):
    """A statement of GOAL: 1 sends, 2 receives, 3 works; what it waits for is numbered by rank."""

    kind: int
    peer: int
    amount: int
    tag: int
    awaited: frozenset[int]


def size_of(plan: opticoll.Plan) -> int:
    """Returns the size of a collective whose chunks have `CHUNK` bytes each."""
    of = plan.collective
    whole = of.kind in ("all_gather", "gather", "scatter")
    parts = of.pieces if whole else of.chunks
    if of.kind == "all_to_all":
        parts = of.ranks * of.pieces
    return CHUNK * parts


def messages(plan: opticoll.Plan) -> list[Message]:
    """Returns the messages of a plan.

    A message is all that a rank sends to another rank in a step with one action and on one route.
    """
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    step_of = [step for step, slots in enumerate(plan.step_slots) for _ in range(slots)]
    sizes: dict[tuple[int, int, int, int, object], int] = defaultdict(int)
    names = ("slot", "source", "destination", "action", "count")
    for index, (slot, *ends, action, count) in enumerate(
        zip(*(columns[name] for name in names), strict=True)
    ):
        route = tuple(plan.route(index)) if plan.names_routes else None
        sizes[step_of[slot], ends[0], ends[1], action, route] += CHUNK * count
    return [Message(*key[:3], size) for key, size in sizes.items()]


def steps_of(sent: list[Message]) -> Iterator[list[Message]]:
    steps: dict[int, list[Message]] = defaultdict(list)
    for one in sent:
        steps[one.step].append(one)
    return (steps[step] for step in sorted(steps))


def hockney(sent: list[Message], latency: int, per_byte: int, *, eager: bool) -> int:
    """Returns the time of messages in ps, by recursion over the steps of each rank.

    An eager send ends as it begins. Another send begins when both ends have reached it, and ends
    when its last byte has left.
    """
    ended: dict[int, int] = defaultdict(int)
    for step in steps_of(sent):
        after = dict(ended)
        for one in step:
            begin = ended[one.source] if eager else max(ended[one.source], ended[one.destination])
            left = begin + one.size * per_byte
            after[one.source] = max(after.get(one.source, 0), begin if eager else left)
            arrived = max(left + latency, ended[one.destination])
            after[one.destination] = max(after.get(one.destination, 0), arrived)
        ended |= after
    return max(ended.values())


def plans(kind: str, *fabrics: str) -> list[opticoll.Plan]:
    """Plans of a collective by algorithms that run on a fabric: each sixth, or all."""
    made = []
    for fabric in fabrics:
        for one in record_rows("algorithms"):
            if one.collective != kind:
                continue
            try:
                made.append(opticoll.plan(kind, fabric, one.name))
            except OpticollError:
                continue
    assert len(made) > 2
    return some_of(made, 6)


STATEMENT = re.compile(r"l(\d+): (?:calc (\d+)|(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+))")


def parsed(text: str) -> list[list[Operation]]:
    """Parses the operations of each rank."""
    made: list[list[Operation]] = []
    for line in text.splitlines()[2:]:
        if line.startswith("rank"):
            assert line == f"rank {len(made)} {{"
            made.append([])
        elif found := STATEMENT.fullmatch(line):
            label, work, call, *numbers = found.groups()
            assert int(label) == len(made[-1])
            kind = {"send": 1, "recv": 2}.get(call or "", 3)
            size, peer, tag = map(int, numbers if call else (work, 0, 0))
            made[-1].append(Operation(kind, peer, size, tag, frozenset()))
        elif line != "}" and not line.startswith("// step "):
            later, earlier = map(int, re.findall(r"\d+", line))
            assert line == f"l{later} requires l{earlier}"
            one = made[-1][later]
            made[-1][later] = one._replace(awaited=one.awaited | {earlier})
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_goal_has_the_messages_of_a_plan_in_the_order_of_its_steps(
    tmp_path: Path, kind: str
) -> None:
    for plan in plans(kind, "crossbar:ranks=6", "torus:dims=2x4"):
        text = tmp_path / "plan.goal"
        plan.export(text, size=size_of(plan))
        ranks = parsed(text.read_text())
        sent = messages(plan)
        in_steps = list(steps_of(sent))
        ends: list[tuple[int, int, int]] = []
        for rank, own in enumerate(ranks):
            # Awaited operations, also through those that join several.
            direct = [
                frozenset[int]().union(
                    *(own[one].awaited if own[one].kind == 3 else {one} for one in node.awaited)
                )
                for node in own
            ]
            steps: list[list[int]] = []
            for number, node in enumerate(own):
                if node.kind == 3:
                    assert node.amount == 0
                    continue
                if steps and direct[steps[-1][0]] == direct[number]:
                    steps[-1].append(number)
                else:
                    steps.append([number])
                if node.kind == 1:
                    ends.append((rank, node.peer, node.tag))
            for before, after in pairwise(steps):
                assert all(direct[one] == set(before) for one in after)
            told = [
                sorted((own[one].kind, own[one].peer, own[one].amount) for one in step)
                for step in steps
            ]
            stated = []
            for step in in_steps:
                part = [(1, one.destination, one.size) for one in step if one.source == rank]
                part += [(2, one.source, one.size) for one in step if one.destination == rank]
                stated += [sorted(part)] if part else []
            assert told == stated
        # Messages between two ranks have different tags, and each message is received.
        assert len(set(ends)) == len(ends) == len(sent)
        received = {
            (node.peer, rank, node.tag)
            for rank, own in enumerate(ranks)
            for node in own
            if node.kind == 2
        }
        assert received == set(ends)


FABRICS = (
    "fully_connected:ranks=6,rate=10Gb/s,latency=1us",
    "crossbar:ranks=8,rate=10Gb/s,latency=1us",
    "torus:dims=2x4,rate=10Gb/s,latency=300ns",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fabric", FABRICS)
def test_replays_take_as_long_as_the_plan(tmp_path: Path, kind: str, fabric: str) -> None:
    text, actions = (tmp_path / f"plan.{one}" for one in ("goal", "tit"))
    for plan in plans(kind, fabric):
        if plan.names_routes:
            continue
        size = size_of(plan)
        simulated = plan.simulate(size)
        for path in (text, actions):
            *_, beside = plan.export(path, size=size)
            beside.unlink()
            # A message begins when both ranks have ended what they did before: rendezvous.
            replayed = opticoll.replay(path, fabric, eager="none").outcome
            assert abs(replayed.time_ps - simulated.time_ps) <= 1e-9 * simulated.time_ps
            assert replayed.messages == len(messages(plan))


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_cost_models_give_the_time_of_a_recursion(tmp_path: Path, kind: str, eager: bool) -> None:
    path, actions = (tmp_path / f"plan.{one}" for one in ("goal", "tit"))
    for plan in plans(kind, *FABRICS[1:], "wdm_ring:ranks=8,wavelengths=4", "ndv2"):
        sent = messages(plan)
        # Both forms say the same; how messages wait does not depend on the form.
        for form in (path, actions) if eager else (path,):
            plan.export(form, size=size_of(plan))
            replayed = opticoll.replay(
                form, "hockney:latency=1us,rate=8Gb/s", eager="all" if eager else "none"
            )
            # 8 Gb/s are 1000 ps for a byte.
            assert replayed.outcome.time_ps == hockney(sent, 10**6, 1000, eager=eager)


@pytest.mark.parametrize(
    ("kind", "algorithm", "steps"),
    [
        ("all_gather", "ring", [1] * 7),
        ("all_reduce", "ring", [1] * 14),
        ("all_gather", "recursive_doubling", [1, 2, 4]),
        ("all_to_all", "pairwise", [1] * 7),
    ],
)
def test_one_message_at_a_time_takes_the_time_of_loggp(
    tmp_path: Path, kind: str, algorithm: str, steps: list[int]
) -> None:
    """Each step takes L + o + n G + o, without contention for ports."""
    plan = opticoll.plan(kind, "crossbar:ranks=8", algorithm)
    path = tmp_path / "plan.goal"
    plan.export(path, size=size_of(plan))
    row = opticoll.replay(path, "loggp:latency=1us,gap=200ns,rate=8Gb/s", end_overhead="500ns")
    expected = sum(10**6 + 2 * 500_000 + blocks * CHUNK * 1000 for blocks in steps)
    assert row.outcome.time_ps == expected


RING = """\
// all_gather ranks=3 root=0 pieces=1 size=10
num_ranks 3
rank 0 {
// step 0 copy 0
l0: send 10b to 1 tag 0
l1: recv 10b from 2 tag 0
// step 1 copy 2
l2: send 10b to 1 tag 1
l2 requires l0
l2 requires l1
l3: recv 10b from 2 tag 1
l3 requires l0
l3 requires l1
}
rank 1 {
// step 0 copy 1
l0: send 10b to 2 tag 0
l1: recv 10b from 0 tag 0
// step 1 copy 0
l2: send 10b to 2 tag 1
l2 requires l0
l2 requires l1
l3: recv 10b from 0 tag 1
l3 requires l0
l3 requires l1
}
rank 2 {
// step 0 copy 2
l0: send 10b to 0 tag 0
l1: recv 10b from 1 tag 0
// step 1 copy 1
l2: send 10b to 0 tag 1
l2 requires l0
l2 requires l1
l3: recv 10b from 1 tag 1
l3 requires l0
l3 requires l1
}
"""
ACTIONS = """\
0 init
0 irecv 2 0 10
0 isend 1 0 10
0 waitall 2
0 irecv 2 1 10
0 isend 1 1 10
0 waitall 2
0 finalize
1 init
1 irecv 0 0 10
1 isend 2 0 10
1 waitall 2
1 irecv 0 1 10
1 isend 2 1 10
1 waitall 2
1 finalize
2 init
2 irecv 1 0 10
2 isend 0 0 10
2 waitall 2
2 irecv 1 1 10
2 isend 0 1 10
2 waitall 2
2 finalize
"""
RING_OF_THREE = ("all_gather", "--fabric", "crossbar:ranks=3", "--algorithm", "ring")


def test_a_ring_of_three_is_written_line_by_line(run: Run, tmp_path: Path) -> None:
    for name, text in (("ring.goal", RING), ("ring.tit", ACTIONS)):
        path = tmp_path / name
        finished = run("export", *RING_OF_THREE, "--size", "10B", "--output", path)
        assert (finished.code, finished.err) == (0, f"opticoll: wrote {path}, {path}.plan\n")
        assert path.read_text() == text


def test_goal_that_states_a_schedule_is_proved_simulated_and_kept(run: Run, tmp_path: Path) -> None:
    path, kept = tmp_path / "ring.goal", tmp_path / "ring.plan"
    path.write_text(RING)
    assert run("verify", path).code == 0
    assert run("simulate", path, "--fabric", "torus:dims=3").code == 0
    assert run("import", path, "--output", kept).code == 0
    plan = opticoll.read_plan(kept)
    assert (plan.verify(), len(plan), len(plan.step_slots), plan.size_bytes) == ([], 6, 2, 10)
    # The trace is the same as before.
    assert run("replay", path).code == 0


def test_a_schedule_in_goal_that_is_wrong_is_rejected(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ring.goal"
    path.write_text(RING.replace("step 1 copy 2", "step 1 copy 1"))
    finished = run("verify", path)
    assert finished.code == 1
    assert "rank 0" in finished.out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (RING.splitlines()[0] + "\n", "", "not a schedule; use `opticoll replay`"),
        ("ranks=3", "ranks=4", "states 4 ranks, but there are 3"),
        ("all_gather", "all_gathered", "line 1"),
        ("size=10", "size=ten", "`size=ten` is not a number"),
        (" size=10", "", "no `size=`"),
        ("// step 1 copy 2", "", "line 8: no comment above it states the step"),
        ("copy 2", "move 2", "line 8: no comment above it states the step"),
        ("step 1 copy 2", "step 1 copy 2+2", "`2+2` is not a range of the 3 chunks"),
        ("step 1 copy 2", "step 1 copy 1+2", "the chunks have 20 bytes; 10 are sent"),
        ("recv 10b from 2 tag 1", "recv 11b from 2 tag 1", "10 are sent and 11 received"),
        ("l2 requires l1\nl3", "l3", "line 8: the message of step 1 must require all 2 messages"),
        ("step 1 copy 2", "step 0 copy 2", "does not belong to an earlier step"),
        ("l2 requires l0", "l2 irequires l0", "no `irequires`"),
        ("l2 requires l0\n", "l4: calc 5\nl2 requires l4\nl2 requires l0\n", "no local work"),
        ("l0: send 10b to 1 tag 0", "l0: send 10b to 1 tag 9", "rank 0 sends no message"),
    ],
)
def test_goal_that_does_not_do_what_it_states_is_refused(
    run: Run, tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "ring.goal"
    assert old in RING
    path.write_text(RING.replace(old, new, 1))
    finished = run("verify", path)
    assert (finished.code, finished.out) == (2, "")
    assert said in finished.err
    assert str(path) in finished.err


def test_a_trace_without_chunks_is_no_schedule(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ring.tit"
    assert run("export", *RING_OF_THREE, "--output", path).code == 0
    finished = run("verify", path)
    assert (finished.code, finished.out) == (2, "")
    assert "a trace of SimGrid, not a plan or schedule; `opticoll replay FILE`" in finished.err


@pytest.mark.parametrize("collective", ["barrier", "all_to_all"])
def test_messages_without_bytes_are_no_goal(run: Run, tmp_path: Path, collective: str) -> None:
    path = tmp_path / "empty.goal"
    options = ("--fabric", "crossbar:ranks=8", "--size", "7B", "--output", path)
    finished = run("export", collective, *options)
    assert finished.code == 2
    assert "has no bytes" in finished.err
    assert not path.exists()
