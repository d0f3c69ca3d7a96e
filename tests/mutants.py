"""Files that are changed in one place: both verifiers reject them, or their bytes are right."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import opticoll
from chakra_files import RECEIVE, SEND, messages, node, unpacked
from opticoll import Plan, Program, reference
from opticoll.execution.payload import Payload
from opticoll.inputs import imported
from opticoll.outputs.verification import Refuted
from opticoll.reference.chakra import read_chakra
from opticoll.reference.msccl import read_msccl
from opticoll.reference.mscclpp import read_mscclpp
from opticoll.reference.plan import NotAPlan
from opticoll.reference.program import verify_program
from opticoll.reference.sends import read_sccl, read_sends, read_te_ccl

KINDS = {
    "drop": "an instruction, a node, a send or a flow is left out",
    "double": "one of them is there twice",
    "swap": "two neighbouring ones change places",
    "retarget": "one goes to, or comes from, another rank",
    "channel": "a thread block or a node uses another channel or tag",
    "resize": "one moves one chunk more, or states more bytes",
    "buffer": "one reads or writes another buffer, or adds what it copied",
    "offset": "one reads or writes one chunk further",
    "dependency": "a dependency is left out, moved or added; a send has another step",
}
"""Kind of content that is changed."""

Change = Callable[[], Any]
"""Makes the content of a mutant."""

Rows = list[dict[str, Any]]
"""Transfers of a schedule: step, source, destination, chunk, and what else the file says."""


@dataclass(frozen=True)
class Form:
    """A kind of file: its two readers, one for each verifier, and how its content is changed."""

    name: str
    first: Callable[[Any], Program | Plan]
    second: Callable[[Any], Any]
    mutants: Callable[[Any], Iterator[tuple[str, Change]]]


def modes(program: Program | Plan) -> list[bool]:
    """Returns the modes of a program: True is in place. A plan has the modes of its program."""
    one = Program.from_plan(program) if isinstance(program, Plan) else program
    both = {True: one.in_place, False: one.out_of_place}
    return [in_place for in_place, used in both.items() if used]


def wrong(content: Any, form: Form | None = None, *, in_place: bool) -> tuple[set[str], set[str]]:
    """Returns the rules that a file breaks, by each verifier; `refused` if a reader refuses it."""
    form = form or MSCCL
    first, second = {"refused"}, {"refused"}
    try:
        one = form.first(content)
        found = one.verify(in_place=in_place).violations if isinstance(one, Program) else None
        first = {each.kind for each in (one.verify() if isinstance(one, Plan) else found or [])}
    except Refuted as error:
        first = {each.kind for each in error.row["violations"]}
    except opticoll.OpticollError:
        pass
    try:
        other = form.second(content)
        plan = isinstance(other, reference.Plan)
        problems = reference.verify(other) if plan else verify_program(other, in_place=in_place)
        second = {each.kind for each in problems}
    except NotAPlan:
        pass
    return first, second


def carried_out(one: Program | Plan, *, in_place: bool) -> bool:
    """Returns whether real bytes give the result that the collective defines."""
    program = Program.from_plan(one) if isinstance(one, Plan) else one
    for operator in ("sum", "max"):
        job = Payload(program.collective, 3, "uint32", operator)
        ranks = range(program.collective.ranks)
        outputs = program.run(
            [job.input(rank).tobytes() for rank in ranks],
            elements=3,
            element_type="uint32",
            operator=operator,
            in_place=in_place,
        )
        if any(job.output(rank).tobytes() != outputs[rank] for rank in ranks):
            return False
    return True


def field(line: str, name: str) -> str:
    """Returns an attribute of an element, or an empty text if the element lacks it."""
    found = re.search(rf' {name}="(-?\w+)"', line)
    return found[1] if found else ""


def msccl_changes(text: str) -> Iterator[tuple[str, Change]]:
    """Yields all single changes of an MSCCL XML file: their kind, and what makes them."""
    lines = text.splitlines()
    steps = {at for at, line in enumerate(lines) if "<step" in line}
    ranks = next(int(field(line, "ngpus")) for line in lines if "<algo" in line)

    def with_field(at: int, name: str, value: int | str) -> str:
        changed = [*lines]
        changed[at] = re.sub(rf' {name}="[^"]*"', f' {name}="{value}"', changed[at], count=1)
        return "\n".join(changed)

    def moved(first: int, *between: int, last: int) -> str:
        """Returns lines before `first`, those of `between`, and from `last`; renumbers steps."""
        number, changed = 0, [*lines[:first], *(lines[one] for one in between), *lines[last:]]
        for at, line in enumerate(changed):
            number = 0 if "<tb" in line else number
            if "<step" in line:
                changed[at] = re.sub(r' s="\d+"', f' s="{number}"', line, count=1)
                number += 1
        return "\n".join(changed)

    for at, line in enumerate(lines):
        if at in steps:
            yield "drop", partial(moved, at, last=at + 1)
            yield "double", partial(moved, at, at, last=at)
            if at + 1 in steps:
                yield "swap", partial(moved, at, at + 1, at, last=at + 2)
            changes: list[tuple[str, str, int | str]] = [
                ("offset", name, int(field(line, name) or 0) + 1) for name in ("srcoff", "dstoff")
            ]
            changes += [("resize", "cnt", int(field(line, "cnt") or 0) + 1)]
            changes += [
                ("buffer", name, _OTHER[field(line, name) or "i"]) for name in ("srcbuf", "dstbuf")
            ]
            if int(field(line, "depid") or -1) >= 0:
                changes += [("dependency", "depid", -1)]
                changes += [("dependency", "deps", int(field(line, "deps")) - 1)]
            if field(line, "hasdep") == "1":
                changes += [("dependency", "hasdep", 0)]
        elif "<tb" in line:
            changes = [
                ("retarget", name, (peer + 1) % ranks)
                for name in ("send", "recv")
                if (peer := int(field(line, name) or -1)) >= 0
            ]
            changes += [("channel", "chan", int(field(line, "chan") or 0) + 1)]
        elif "<copy" in line:
            yield "drop", partial(moved, at, last=at + 1)
            changes = [("offset", name, int(field(line, name)) + 1) for name in ("i_off", "o_off")]
        else:
            continue
        for kind, name, value in changes:
            if field(line, name):
                yield kind, partial(with_field, at, name, value)


def mscclpp_changes(text: str) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one place in an execution plan of MSCCL++."""
    plan = json.loads(text)
    ranks = len(plan["gpus"])

    def changed(path: tuple[Any, ...], value: Any) -> str:
        """Returns the plan with another value at a place."""
        other = json.loads(text)
        table = other
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
        return json.dumps(other, indent=1)

    def next_of(path: tuple[Any, ...], value: int, count: int | None = None) -> Change:
        return partial(changed, path, value + 1 if count is None else (value + 1) % count)

    key: tuple[Any, ...]
    for rank, gpu in enumerate(plan["gpus"]):
        own = ("gpus", rank)
        for place, channel in enumerate(gpu["channels"]):
            for at, peer in enumerate(channel.get("connected_to", [])):
                key = (*own, "channels", place, "connected_to", at)
                yield "retarget", next_of(key, peer, ranks)
            for at, group in enumerate(channel.get("rank_groups", [])):
                key = (*own, "channels", place, "rank_groups", at, "ranks")
                yield "retarget", partial(changed, key, group["ranks"][1:])
                yield (
                    "buffer",
                    partial(changed, (*key[:4], "buffer_type"), _OTHER[channel["buffer_type"]]),
                )
        for place, remote in enumerate(gpu["remote_buffers"]):
            key = (*own, "remote_buffers", place)
            yield "retarget", next_of((*key, "rank"), remote["rank"], ranks)
            yield "buffer", partial(changed, (*key, "type"), _OTHER[remote["type"]])
        for place, semaphore in enumerate(gpu["semaphores"]):
            key = (*own, "semaphores", place, "init_value")
            yield "dependency", next_of(key, semaphore["init_value"])
        for number, block in enumerate(gpu["threadblocks"]):
            inside = (*own, "threadblocks", number)
            for place, channel in enumerate(block["channels"]):
                key = (*inside, "channels", place, "channel_ids")
                ids = channel["channel_ids"]
                yield "channel", partial(changed, key, [(one + 1) % 3 for one in ids])
            yield from _changes_of_operations(block["ops"], (*inside, "ops"), changed)


def _changes_of_operations(
    operations: Rows, path: tuple[Any, ...], changed: Callable[[tuple[Any, ...], Any], str]
) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one operation of a thread block or pipeline."""
    for at, one in enumerate(operations):
        before, after = operations[:at], operations[at + 1 :]
        yield "drop", partial(changed, path, [*before, *after])
        yield "double", partial(changed, path, [*before, one, one, *after])
        if after:
            swapped = [*before, after[0], one, *after[1:]]
            yield "swap", partial(changed, path, swapped)
        if "ops" in one:
            yield from _changes_of_operations(one["ops"], (*path, at, "ops"), changed)
        longer = json.loads(json.dumps(one))
        for side in {"src_buff", "dst_buff"} & {*one}:
            for place, buffer in enumerate(one[side]):
                key = (*path, at, side, place)
                longer[side][place]["size"] += 1
                yield "offset", partial(changed, (*key, "index"), buffer["index"] + 1)
                yield "resize", partial(changed, (*key, "size"), buffer["size"] + 1)
                if "type" in buffer:
                    yield "buffer", partial(changed, (*key, "type"), _OTHER[buffer["type"]])
                for name in {"buffer_id", "switch_channel_id"} & {*buffer}:
                    yield "channel", partial(changed, (*key, name), (buffer[name] + 1) % 3)
        if "src_buff" in one:
            yield "resize", partial(changed, (*path, at), longer)
        for name in {"channel_ids", "semaphore_ids"} & {*one}:
            kind = "channel" if name == "channel_ids" else "dependency"
            ids = [(number + 1) % 3 for number in one[name]]
            yield kind, partial(changed, (*path, at, name), ids)
        for name in {"barrier_id", "num_threadblocks"} & {*one}:
            yield "dependency", partial(changed, (*path, at, name), one[name] + 1)
        if "tbg_info" in one:
            group = one["tbg_info"]
            other = {**group, "tb_id": (group["tb_id"] + 1) % group["tbg_size"]}
            yield "offset", partial(changed, (*path, at, "tbg_info"), other)


_OTHER = {"i": "s", "o": "i", "s": "o"}
"""Another buffer for each buffer."""


def chakra_changes(traces: list[bytes]) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one node in the traces of a collective."""
    parts = [messages(trace) for trace in traces]
    ranks = len(traces)

    def with_nodes(rank: int, first: int, last: int, *nodes: dict[str, Any]) -> list[bytes]:
        """Returns the traces with other nodes in place of some nodes of a rank."""
        own = parts[rank]
        packed = [_packed(one) for one in nodes]
        changed = b"".join([*own[:first], *packed, *own[last:]])
        return [*traces[:rank], changed, *traces[rank + 1 :]]

    for rank, own in enumerate(parts):
        nodes = [unpacked(one) for one in own]
        unused = 1 + max(one["id"] for one in nodes[1:])
        for at, told in enumerate(nodes[1:], 1):
            instead = partial(with_nodes, rank, at, at + 1)
            yield "drop", instead
            yield "double", partial(instead, told, {**told, "id": unused})
            if at + 1 < len(nodes):
                place = {name: told[name] for name in ("id", "after")}
                other = {name: nodes[at + 1][name] for name in ("id", "after")}
                both = ({**nodes[at + 1], **place}, {**told, **other})
                yield "swap", partial(with_nodes, rank, at, at + 2, *both)
            for kind, changes in _changes_of_node(told, ranks):
                yield kind, partial(instead, {**told, **changes})


def _changes_of_node(told: dict[str, Any], ranks: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the kinds of changes of a node, each with the attributes that change."""
    count = told.get("msg_chunk_cnt", 1)
    one_more = dict.fromkeys({"msg_chunk_cnt"} & {*told}, count + 1)
    if told["type"] in (SEND, RECEIVE):
        peer = "comm_dst" if told["type"] == SEND else "comm_src"
        yield "retarget", {peer: (told[peer] + 1) % ranks}
        yield "channel", {"comm_tag": told["comm_tag"] + 1}
        size = told["comm_size"]
        yield "resize", {"comm_size": size + size // count} | one_more
        yield "resize", one_more or {"comm_size": size - 1}
    others = {b"i": "s", b"o": "i", b"s": "o"}
    for name in {"srcbuf", "dstbuf"} & {*told}:
        yield "buffer", {name: others[told[name]]}
    if "is_rrc" in told:
        yield "buffer", {"is_rrc": 1 - told["is_rrc"]}
    for name in {"msg_chunk_idx", "chunk_offset"} & {*told}:
        yield "offset", {name: told[name] + 1}
    if step := re.search(rb"(?<=_step)\d+$", told.get("name", b"")):
        # ASTRA-sim's converter names nodes after the instructions, which say the chunks.
        further = told["name"][: step.start()] + b"%d" % (int(step[0]) + 2)
        yield "offset", {"name": further}
    after = told["after"]
    yield "dependency", {"after": [*after, told["id"] + 1]}
    if after:
        yield "dependency", {"after": after[1:]}
        yield "dependency", {"after": [max(0, after[0] - 1), *after[1:]]}


def _packed(told: dict[str, Any]) -> bytes:
    rest: dict[str, Any] = {
        name: value.decode() if isinstance(value, bytes) else value for name, value in told.items()
    }
    return node(rest.pop("id"), rest.pop("type"), rest.pop("after"), **rest)


def sends_changes(text: str) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one line in a CSV of sends."""
    lines = text.splitlines()
    first = 1 + next(at for at, line in enumerate(lines) if line.startswith("step,"))
    heading = lines[first - 1].split(",")
    rows = [dict(zip(heading, line.split(","), strict=True)) for line in lines[first:]]

    def written(changed: Rows) -> str:
        return "\n".join([*lines[:first], *(",".join(map(str, one.values())) for one in changed)])

    yield from _row_changes(rows, int(re.findall(r"ranks=(\d+)", text)[0]), written)


FLOW = re.compile(
    r"Chunk (?P<chunk>\d+) from (?P<owner>\d+) traveled over (?P<source>\d+)->(?P<destination>\d+)"
    r"(?P<volume>.*) in epoch (?P<step>\d+)(?P<switches>.*)"
)


def te_ccl_changes(text: str) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one flow in a result of TE-CCL."""
    content = json.loads(text)
    rows = [match.groupdict() for match in map(FLOW.fullmatch, content["7-Flows"]) if match]

    def written(changed: Rows) -> str:
        flows = [
            f"Chunk {one['chunk']} from {one['owner']} traveled over {one['source']}->"
            f"{one['destination']}{one['volume']} in epoch {one['step']}{one['switches']}"
            for one in changed
        ]
        return json.dumps({**content, "7-Flows": flows})

    vertices = {row[end] for row in rows for end in ("source", "destination")}
    yield from _row_changes(rows, len(vertices), written)


def sccl_changes(text: str) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one send in an algorithm of SCCL."""
    content = json.loads(text)
    names = ("chunk", "source", "destination")
    rows = [
        {"step": step, **dict(zip(names, send, strict=True))}
        for step, each in enumerate(content["steps"])
        for send in each["sends"]
    ]

    def written(changed: Rows) -> str:
        count = 1 + max(int(row["step"]) for row in changed)
        steps = [{**content["steps"][0], "sends": list[Any]()} for _ in range(count)]
        for row in changed:
            steps[int(row["step"])]["sends"].append([int(row[name]) for name in names])
        return json.dumps({**content, "steps": steps})

    yield from _row_changes(rows, content["collective"]["nodes"], written)


def _row_changes(
    rows: Rows, ranks: int, written: Callable[[Rows], str]
) -> Iterator[tuple[str, Change]]:
    """Yields all changes of one transfer of a schedule."""

    def instead(at: int, last: int, *others: dict[str, Any]) -> str:
        return written([*rows[:at], *others, *rows[last:]])

    for at, row in enumerate(rows):
        yield "drop", partial(instead, at, at + 1)
        yield "double", partial(instead, at, at + 1, row, row)
        if at + 1 < len(rows):
            # The order of lines has no meaning, so the steps of two lines are exchanged.
            after = rows[at + 1]
            both = ({**row, "step": after["step"]}, {**after, "step": row["step"]})
            yield "swap", partial(instead, at, at + 2, *both)
        changes: list[tuple[str, str, int | str]] = [
            ("retarget", name, (int(row[name]) + 1) % ranks) for name in ("source", "destination")
        ]
        changes += [("offset", "chunk", int(row["chunk"]) + 1)]
        changes += [("dependency", "step", max(0, int(row["step"]) + by)) for by in (-1, 1)]
        if "count" in row:
            changes += [("resize", "count", int(row["count"]) + 1)]
        if "action" in row:
            other = "copy" if row["action"] == "reduce" else "reduce"
            changes += [("buffer", "action", other)]
        if "volume" in row:
            changes += [("resize", "volume", " with volume 2.0")]
        for kind, name, value in changes:
            yield kind, partial(instead, at, at + 1, {**row, name: value})


def _plan_of(content: str, name: str, ranks: int | None = None) -> Plan:
    """Reads a schedule of another tool as a plan."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "changed")
        path.write_text(content)
        return imported.read_plan(path, name, ranks=ranks)[0]


MSCCL = Form("msccl", Program.from_msccl, read_msccl, msccl_changes)
MSCCLPP = Form("mscclpp", Program.from_mscclpp, read_mscclpp, mscclpp_changes)
CHAKRA = Form("chakra", Program.from_chakra, read_chakra, chakra_changes)
SENDS = Form("sends", partial(_plan_of, name="sends"), read_sends, sends_changes)
SCCL = Form("sccl", partial(_plan_of, name="sccl"), read_sccl, sccl_changes)


def te_ccl(text: str) -> Form:
    """Returns the form of changes of a result of TE-CCL, which keep its number of ranks.

    Raises
    ------
    Refuted
        The result leaves a rank out.
    """
    ranks = _plan_of(text, "te_ccl").collective.ranks
    first = partial(_plan_of, name="te_ccl", ranks=ranks)
    return Form("te_ccl", first, partial(read_te_ccl, ranks=ranks), te_ccl_changes)


def sampled(form: Form, content: Any, most: int | None, seed: int) -> Iterator[tuple[str, Any]]:
    """Yields mutants, at most `most` of each kind, which `seed` chooses."""
    by_kind: defaultdict[str, list[Change]] = defaultdict(list)
    for kind, change in form.mutants(content):
        by_kind[kind].append(change)
    for kind, changes in by_kind.items():
        few = most is None or len(changes) <= most
        chosen = changes if few else random.Random(seed).sample(changes, most or 0)
        yield from ((kind, change()) for change in chosen)


def judged(
    form: Form, content: Any, most: int | None = None, seed: int = 20
) -> Counter[tuple[str, str]]:
    """Counts the fates of mutants by kind.

    A mutant is rejected by both verifiers (or refused by both readers), or equivalent: it has the
    right bytes in every mode.
    """
    counts: Counter[tuple[str, str]] = Counter()
    of_programs = isinstance(form.first(content), Program)
    for kind, changed in sampled(form, content, most, seed):
        counts[kind, "tried"] += 1
        rules: set[str] = set()
        for in_place in _modes_of(form, changed):
            first, second = wrong(changed, form, in_place=in_place)
            assert bool(first) == bool(second), (kind, first, second)
            if of_programs:
                assert ("refused" in first) == ("refused" in second), (kind, first, second)
            rules |= first
            if not first:
                assert carried_out(form.first(changed), in_place=in_place), kind
        counts[kind, "rejected" if rules else "equivalent"] += 1
        counts[kind, "only by a race"] += rules == {"race"}
        counts[kind, "refused"] += rules == {"refused"}
    return counts


def _modes_of(form: Form, changed: Any) -> list[bool]:
    """Returns the modes to try; one mode is enough if a reader refuses the file."""
    try:
        return modes(form.first(changed))
    except opticoll.OpticollError:
        return [True]
