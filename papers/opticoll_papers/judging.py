"""Items of papers, what they print, and how a computed number is judged against that.

A paper's `claims.py` names each algorithm, parameter, table, figure and claim of the paper: what is
printed, and the criterion, threshold included. It is written before anything is computed, and no
module that computes imports it; so a computed number cannot be the printed one. `judge` alone sees
both.

>>> ring = Claim(id="ring", where="Table I", says="Ring takes N - 1 steps.", printed=1023,
...              unit="steps", judge=Equal())
>>> judge(ring, Computed(1023)).verdict, judge(ring, Computed(1024)).verdict
('reproduced', 'refuted')
>>> faster = Claim(id="tar", where="Fig. 2", says="TAR is faster than RING.", unit="%",
...                judge=AtLeast(10, "less is within what seeds change"))
>>> row = judge(faster, Computed(2.1, "1056 terminals, 64 B."))
>>> row.verdict, row.margin
('refuted', '2.1, at least 10 asked for')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from opticoll.outputs.rows import Row, means

Verdict = Literal[
    "reproduced",
    "consistent",
    "claim_holds",
    "conditional",
    "undecided",
    "refuted",
    "inconsistent",
    "used",
    "not_reproducible",
    "not_done",
    "left_out",
]

MEANINGS: dict[Verdict, str] = {
    "reproduced": "a computation that does not know the printed value gives it",
    "consistent": "the value agrees with what was computed from other printed values of the paper",
    "claim_holds": "a claim in words holds, by a margin whose threshold was stated before",
    "conditional": "it agrees under a reading or parameter that the paper does not state",
    "undecided": "it disagrees under such a reading, which refutes nothing; or it agrees by "
    "chance, or because of a choice that the paper leaves open",
    "refuted": "the computed value differs, whatever the paper leaves open",
    "inconsistent": "the paper contradicts itself: another place of it gives the computed value",
    "used": "a parameter or algorithm, taken over as printed",
    "not_reproducible": "the paper does not say enough to compute it",
    "not_done": "opticoll does not compute it",
    "left_out": "not computed in this run: `--quick` leaves it out, or only `--long` has it",
}
"""Meanings of the verdicts."""

Value = int | float | str | tuple[int | float | str, ...]
"""A number, words, or several of them."""

Numbers = int | float | tuple[int | float | str, ...]


class Criterion(Protocol):
    """Rule by which a computed value is judged.

    `rule` is the criterion in words for the page; `good` is the verdict of a value that meets it.
    """

    @property
    def rule(self) -> str:
        """The criterion in words."""

    @property
    def good(self) -> Verdict:
        """The verdict of a value that meets it."""

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether a computed value meets the criterion."""

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns by how much the value meets or misses the criterion, in words."""


def _number(value: Value | None) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"`{value}` is judged as a number")
    return float(value)


@dataclass(frozen=True)
class Equal:
    """The printed value exactly; of several values each."""

    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return "equal"

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether both values are equal."""
        return printed == computed

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the difference in words."""
        if printed == computed:
            return "equal"
        if isinstance(printed, int | float) and isinstance(computed, int | float):
            return f"{computed - printed:+.4g}"
        return "differs"


@dataclass(frozen=True)
class Used(Equal):
    """A parameter or algorithm that opticoll takes over: what it uses equals what is printed."""

    good: Verdict = "used"


@dataclass(frozen=True)
class Rounded:
    """Equal when rounded to as many decimals as are printed; of several values each."""

    decimals: int
    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return f"equal when rounded to {self.decimals} decimals"

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether each value is at most half a unit of the last decimal away."""
        ours = computed if isinstance(computed, tuple) else (computed,)
        theirs = printed if isinstance(printed, tuple) else (printed,)
        # Binary floats cannot hold most decimals: a half may be a little larger.
        allowed = 0.5 * 10**-self.decimals * (1 + 1e-9)
        return len(ours) == len(theirs) and all(
            abs(_number(own) - _number(their)) <= allowed
            for own, their in zip(ours, theirs, strict=True)
        )

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the largest difference in words."""
        ours = computed if isinstance(computed, tuple) else (computed,)
        theirs = printed if isinstance(printed, tuple) else (printed,)
        pairs = list(zip(ours, theirs, strict=False))
        if any(their is None for _, their in pairs):
            return "nothing is printed"
        away = max((_number(own) - _number(their) for own, their in pairs), key=abs)
        # Rounding errors of binary fractions do not count as a difference.
        return f"{round(away, self.decimals + 3) + 0.0:+.2g}"


@dataclass(frozen=True)
class Within:
    """A printed number within an allowed difference: of the unit, or (`share`) of the number."""

    allowed: float
    why: str
    share: bool = False
    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        amount = f"{100 * self.allowed:g} %" if self.share else f"{self.allowed:g}"
        return f"within {amount}: {self.why}"

    def _away(self, printed: Value | None, computed: Value) -> float:
        theirs = _number(printed)
        return (_number(computed) - theirs) / (theirs if self.share else 1)

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether the difference is allowed."""
        return printed is not None and abs(self._away(printed, computed)) <= self.allowed + 1e-9

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the difference in words."""
        if printed is None:
            return "nothing is printed"
        away = self._away(printed, computed)
        return f"{100 * away:+.2g} %" if self.share else f"{away:+.3g}"


@dataclass(frozen=True)
class AtLeast:
    """A claim in words that holds where a computed number reaches a limit."""

    limit: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return f"at least {self.limit:g}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether the number reaches the limit."""
        return _number(computed) >= self.limit

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the number and the limit in words."""
        return f"{_number(computed):.4g}, at least {self.limit:g} asked for"


@dataclass(frozen=True)
class AtMost:
    """A claim in words that holds where a computed number does not exceed a limit."""

    limit: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return f"at most {self.limit:g}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether the number is no larger than the limit."""
        return _number(computed) <= self.limit

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the number and the limit in words."""
        return f"{_number(computed):.4g}, at most {self.limit:g} allowed"


@dataclass(frozen=True)
class Between:
    """A claim in words that holds where computed numbers, one or several, are in a range."""

    low: float
    high: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return f"from {self.low:g} to {self.high:g}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether all numbers are in the range."""
        values = computed if isinstance(computed, tuple) else (computed,)
        return all(self.low <= _number(value) <= self.high for value in values)

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the numbers and the range in words."""
        values = computed if isinstance(computed, tuple) else (computed,)
        shown = ", ".join(f"{_number(value):.4g}" for value in values)
        return f"{shown}, {self.low:g} to {self.high:g} asked for"


@dataclass(frozen=True)
class NotDone:
    """An item that opticoll does not compute; `why` says so on the page."""

    why: str
    good: Verdict = "not_done"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        return self.why

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Never asked."""
        raise TypeError("nothing is computed for an item that is not done")

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Nothing."""
        return ""


@dataclass(frozen=True)
class NotStated(NotDone):
    """An item that cannot be computed: `why` names what the paper does not say.

    Where something near it can be computed, the number is shown beside it and not judged.
    """

    good: Verdict = "not_reproducible"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An item of a paper: an algorithm, parameter, table, figure or claim.

    `where` is its place in the paper, `says` what the paper says, in our words. `printed` is the
    value that it prints, None where it has words only; `evaluates` names the printed formula or
    words that `printed` is evaluated from, where the number itself is not in the paper. `reading`
    is an assumption that the paper does not state: the verdict is then `conditional` or
    `undecided`. `uses` are claims whose printed values go into the computation: at best
    `consistent`. `command` shows the number alone, where `opticoll reproduce` is not the only way
    to it. `remark` says what a reader must know; `dispute` what a referee says against the
    verdict, and why it stands. `full_only`: a quick run computes it on other cases, or not at all,
    and leaves it out. `afterwards`: the criterion was fixed when the value was known. `misses` is
    the verdict of a value that does not meet the criterion; `undecided` says why meeting it decides
    nothing.
    """

    id: str
    where: str
    says: str
    judge: Criterion
    claim: str = ""
    part: str = ""
    unit: str = ""
    printed: Value | None = None
    evaluates: str = ""
    reading: str = ""
    uses: tuple[str, ...] = ()
    command: str = ""
    remark: str = ""
    dispute: str = ""
    full_only: bool = False
    afterwards: bool = False
    misses: Verdict = "refuted"
    undecided: str = ""


@dataclass(frozen=True)
class Computed:
    """Result computed for a claim: the value that is judged, and a note in words.

    The value of what is not judged may be None: the words alone stand on the page.
    `by_chance`: draws would give the value as often if the claim were false, or true; it is then
    `undecided`. `interval` has the true value in 95 of 100 such studies; the value is then shown
    with two digits.
    """

    value: Value | None
    note: str = ""
    by_chance: bool = False
    interval: tuple[float, float] | None = None

    @property
    def rounded(self) -> Value | None:
        """The value with the digits that it has."""
        if self.interval is None or not isinstance(self.value, int | float):
            return self.value
        return float(f"{self.value:.2g}")


class Finding(Row):
    """An item of a paper, judged."""

    id: str = means("Name of the item")
    reading_of: str = means("Name of the claim of which the item is a reading, or the item itself")
    where: str = means("Place in the paper")
    claim: str = means("What the paper says")
    paper: float | str | None = means(
        "Value that the paper prints, or that a printed formula gives", absent="it prints none"
    )
    computed: float | str | None = means("Value that was computed", absent="none was computed")
    unit: str = means("Unit of both")
    verdict: Verdict = means("Verdict")
    criterion: str = means("Criterion of the verdict, and whether it was fixed afterwards")
    margin: str = means("By how much the criterion is met or missed")
    command: str = means("Command that computes the value")
    note: str = means("Assumptions, and how the value came out")


AFTERWARDS = "; fixed when the value was known"


def judge(claim: Claim, computed: Computed | None, paper: str = "") -> Finding:
    """Judges a claim: the only function that sees the printed and the computed value.

    Raises
    ------
    TypeError
        A number is asked for and words were computed.
    """
    criterion = claim.judge
    judged = not isinstance(criterion, NotDone)
    notes = [claim.remark]
    if not judged:
        verdict, margin = criterion.good, ""
    elif computed is None or computed.value is None:
        verdict, margin = "left_out", ""
    else:
        met = criterion.met(claim.printed, computed.value)
        margin = criterion.margin(claim.printed, computed.value)
        if computed.by_chance or (met and claim.undecided):
            verdict = "undecided"
        elif claim.reading:
            verdict = "conditional" if met else "undecided"
        elif not met:
            verdict = claim.misses
        else:
            verdict = "consistent" if claim.uses else criterion.good
    if claim.evaluates:
        notes.append(f"The printed value is evaluated from {claim.evaluates.removesuffix('.')}.")
    if claim.reading:
        notes.append(f"Reading: {claim.reading.removesuffix('.')}.")
    if claim.uses:
        notes.append(f"Computed from the printed values of {', '.join(claim.uses)}.")
    if computed is not None:
        notes.append(computed.note)
        if computed.interval is not None:
            low, high = computed.interval
            notes.append(f"95 % interval: {low:.2g} to {high:.2g}.")
    if claim.undecided:
        notes.append(f"Undecided: {claim.undecided.removesuffix('.')}.")
    if claim.dispute:
        notes.append(f"Disputed: {claim.dispute.removesuffix('.')}.")
    return Finding(
        id=claim.id,
        reading_of=claim.claim or claim.id,
        where=claim.where,
        claim=claim.says,
        paper=_shown(claim.printed),
        computed=None if computed is None else _shown(computed.rounded),
        unit=claim.unit,
        verdict=verdict,
        criterion=criterion.rule + (AFTERWARDS if claim.afterwards else ""),
        margin=margin,
        command=claim.command
        or (f"opticoll reproduce {paper} --only {claim.id}" if judged else ""),
        note=" ".join(note for note in notes if note),
    )


def judge_all(
    claims: tuple[Claim, ...], computed: Mapping[str, Computed], paper: str
) -> list[Finding]:
    """Findings of all claims of a paper, in the order of the claims.

    Raises
    ------
    KeyError
        Something was computed that is no claim.
    """
    unknown = set(computed) - {claim.id for claim in claims}
    if unknown:
        raise KeyError(f"computed, but no claim of {paper}: {', '.join(sorted(unknown))}")
    return [judge(claim, computed.get(claim.id), paper) for claim in claims]


def claim_verdicts(findings: Iterable[Finding]) -> dict[str, Verdict]:
    """Returns the verdict of each claim: of its items' verdicts the first in `_FIRST`.

    An item that fails without a reading decides, then one that holds without, then a reading under
    which the claim holds.
    """
    items: dict[str, list[Verdict]] = {}
    for one in findings:
        items.setdefault(one.reading_of, []).append(one.verdict)
    return {claim: min(own, key=_FIRST.index) for claim, own in items.items()}


_FIRST: tuple[Verdict, ...] = (
    "refuted",
    "inconsistent",
    "reproduced",
    "consistent",
    "claim_holds",
    "used",
    "conditional",
    "undecided",
    "not_reproducible",
    "not_done",
    "left_out",
)
"""Verdicts by rank: a claim has the first of these verdicts that one of its items has."""


def _shown(value: Value | None) -> float | str | None:
    if isinstance(value, tuple):
        return ", ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in value)
    return value
