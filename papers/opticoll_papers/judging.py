"""Claims of papers, and the judgement of a computed value against the printed value.

The claims of a paper name each algorithm, parameter, table, figure and statement of the paper, with
the printed value and the criterion. They are written before anything is computed. No module that
computes imports them, so a computed value cannot be copied from the paper. Only `judge` sees both.

>>> ring = Claim(id="ring", where="Table I", says="Ring takes N - 1 steps.", printed=1023,
...              unit="steps", judge=Equal())
>>> judge(ring, Computed(1023)).verdict, judge(ring, Computed(1024)).verdict
('reproduced', 'refuted')
>>> faster = Claim(id="tar", where="Fig. 2", says="TAR is faster than RING.", unit="%",
...                judge=AtLeast(10, "less is within what seeds change"))
>>> row = judge(faster, Computed(2.1, "1056 terminals, 64 B."))
>>> row.verdict, row.margin
('refuted', '2.1, at least 10 required')
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
    "reproduced": "a computation that does not use the printed value gives the printed value",
    "consistent": "the value agrees with values computed from other printed values of the paper",
    "claim_holds": "a claim in words holds by a margin that was fixed before the computation",
    "conditional": "the value agrees under an assumption that the paper does not state: a "
    "reading of a sentence, or the value of a parameter",
    "undecided": "the value disagrees under such an assumption; or it agrees only by chance, "
    "or because of a choice that the paper leaves open. The paper is neither confirmed nor "
    "refuted",
    "refuted": "the computed value differs under every reading of the paper",
    "inconsistent": "two places of the paper contradict each other, and one of them gives the"
    " computed value",
    "used": "a parameter or algorithm that is taken from the paper as printed",
    "not_reproducible": "the paper does not say enough to compute the value",
    "not_done": "opticoll does not compute the value",
    "left_out": "not computed in this run: `--quick` leaves it out, or only `--long` has it",
}
"""Meanings of the verdicts, by verdict."""

Value = int | float | str | tuple[int | float | str, ...]
"""A number, words, or several of these."""

Numbers = int | float | tuple[int | float | str, ...]


class Criterion(Protocol):
    """Rule that judges a computed value.

    `rule` is the criterion in words, for the page. `good` is the verdict of a value that meets the
    criterion.
    """

    @property
    def rule(self) -> str:
        """Criterion in words."""

    @property
    def good(self) -> Verdict:
        """Verdict of a value that meets the criterion."""

    def met(self, printed: Value | None, computed: Value) -> bool:
        """Returns whether a computed value meets the criterion."""

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns in words by how much a value meets or misses the criterion."""


def _number(value: Value | None) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"`{value}` is judged as a number")
    return float(value)


@dataclass(frozen=True)
class Equal:
    """Criterion: the computed value, or every one of several, equals the printed value."""

    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        return "equal"

    def met(self, printed: Value | None, computed: Value) -> bool:
        return printed == computed

    def margin(self, printed: Value | None, computed: Value) -> str:
        if printed == computed:
            return "equal"
        if isinstance(printed, int | float) and isinstance(computed, int | float):
            return f"{computed - printed:+.4g}"
        return "differs"


@dataclass(frozen=True)
class Used(Equal):
    """Criterion of a parameter or algorithm that opticoll uses as printed."""

    good: Verdict = "used"


@dataclass(frozen=True)
class Rounded:
    """Criterion: rounded to the printed number of decimals, the values are equal."""

    decimals: int
    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        return f"equal when rounded to {self.decimals} decimals"

    def met(self, printed: Value | None, computed: Value) -> bool:
        ours = computed if isinstance(computed, tuple) else (computed,)
        theirs = printed if isinstance(printed, tuple) else (printed,)
        # Binary fractions cannot represent most decimals, so a half may be slightly larger.
        allowed = 0.5 * 10**-self.decimals * (1 + 1e-9)
        return len(ours) == len(theirs) and all(
            abs(_number(own) - _number(their)) <= allowed
            for own, their in zip(ours, theirs, strict=True)
        )

    def margin(self, printed: Value | None, computed: Value) -> str:
        ours = computed if isinstance(computed, tuple) else (computed,)
        theirs = printed if isinstance(printed, tuple) else (printed,)
        pairs = list(zip(ours, theirs, strict=False))
        if any(their is None for _, their in pairs):
            return "nothing is printed"
        away = max((_number(own) - _number(their) for own, their in pairs), key=abs)
        # Differences due to binary fractions do not count.
        return f"{round(away, self.decimals + 3) + 0.0:+.2g}"


@dataclass(frozen=True)
class Within:
    """Criterion: the difference to the printed number is allowed.

    With `share`, as a fraction of it.
    """

    allowed: float
    why: str
    share: bool = False
    good: Verdict = "reproduced"

    @property
    def rule(self) -> str:
        amount = f"{100 * self.allowed:g} %" if self.share else f"{self.allowed:g}"
        return f"within {amount}: {self.why}"

    def _away(self, printed: Value | None, computed: Value) -> float:
        theirs = _number(printed)
        return (_number(computed) - theirs) / (theirs if self.share else 1)

    def met(self, printed: Value | None, computed: Value) -> bool:
        return printed is not None and abs(self._away(printed, computed)) <= self.allowed + 1e-9

    def margin(self, printed: Value | None, computed: Value) -> str:
        if printed is None:
            return "nothing is printed"
        away = self._away(printed, computed)
        return f"{100 * away:+.2g} %" if self.share else f"{away:+.3g}"


@dataclass(frozen=True)
class AtLeast:
    """Criterion of a claim in words: a computed number is at least a limit."""

    limit: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        return f"at least {self.limit:g}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        return _number(computed) >= self.limit

    def margin(self, printed: Value | None, computed: Value) -> str:
        """Returns the number and the limit in words."""
        return f"{_number(computed):.4g}, at least {self.limit:g} required"


@dataclass(frozen=True)
class AtMost:
    """Criterion of a claim in words: a computed number is at most a limit."""

    limit: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        return f"at most {self.limit:g}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        return _number(computed) <= self.limit

    def margin(self, printed: Value | None, computed: Value) -> str:
        return f"{_number(computed):.4g}, at most {self.limit:g} allowed"


@dataclass(frozen=True)
class Between:
    """Criterion of a claim in words: all computed numbers are in a range."""

    low: float
    high: float
    why: str
    good: Verdict = "claim_holds"

    @property
    def rule(self) -> str:
        """The criterion in words."""
        exact = self.low == self.high
        limits = f"exactly {self.low:g}" if exact else f"from {self.low:g} to {self.high:g}"
        return f"{limits}: {self.why}"

    def met(self, printed: Value | None, computed: Value) -> bool:
        values = computed if isinstance(computed, tuple) else (computed,)
        return all(self.low <= _number(value) <= self.high for value in values)

    def margin(self, printed: Value | None, computed: Value) -> str:
        values = computed if isinstance(computed, tuple) else (computed,)
        shown = ", ".join(f"{_number(value):.4g}" for value in values)
        return f"{shown}, {self.low:g} to {self.high:g} required"


@dataclass(frozen=True)
class NotDone:
    """Claim that opticoll does not compute; `why` is the reason for the page."""

    why: str
    good: Verdict = "not_done"

    @property
    def rule(self) -> str:
        return self.why

    def met(self, printed: Value | None, computed: Value) -> bool:
        raise TypeError("nothing is computed for an item that is not done")

    def margin(self, printed: Value | None, computed: Value) -> str:
        return ""


@dataclass(frozen=True)
class NotStated(NotDone):
    """Claim that cannot be computed; `why` names the information that the paper lacks.

    If a related number can be computed, the page shows the number without judging it.
    """

    good: Verdict = "not_reproducible"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim: an algorithm, parameter, table, figure or statement of a paper.

    `where` is the place in the paper, and `says` is the statement in our words. `printed` is the
    printed value, or None if the paper has only words. If the paper prints no number, `evaluates`
    names the formula or the words from which `printed` was evaluated.

    `reading` is an assumption that the paper does not state; the verdict is then `conditional` or
    `undecided`. `uses` are claims whose printed values the computation uses; the verdict is then at
    best `consistent`. `misses` is the verdict of a value that does not meet the criterion.
    `undecided` is the reason why a value that meets the criterion decides nothing. `afterwards`:
    the criterion was fixed after the value was known.

    `command` is another command that shows the number. `remark` is for all readers of the page.
    `dispute` is an objection to the verdict, and our answer. `full_only`: a quick run omits the
    claim, since it does not compute the claim's cases.
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
    """Value computed for a claim, and a note in words.

    If the claim is not judged, the value may be None, and the page has only the note. `by_chance`:
    random draws do not decide the claim, so it is `undecided`. `interval` is a 95 % confidence
    interval; the value is then shown with two digits.
    """

    value: Value | None
    note: str = ""
    by_chance: bool = False
    interval: tuple[float, float] | None = None

    @property
    def rounded(self) -> Value | None:
        """Value with two digits if it has an interval."""
        if self.interval is None or not isinstance(self.value, int | float):
            return self.value
        return float(f"{self.value:.2g}")


class Finding(Row):
    """An item of a paper, judged."""

    id: str = means("Name of the item")
    reading_of: str = means("Name of the claim; an item may be one of several readings of a claim")
    where: str = means("Place in the paper")
    claim: str = means("What the paper says")
    paper: float | str | None = means(
        "Value that the paper prints, or that a printed formula gives",
        absent="the paper prints none",
    )
    computed: float | str | None = means("Value that was computed", absent="no value was computed")
    unit: str = means("Unit of both")
    verdict: Verdict = means("Verdict")
    criterion: str = means("Criterion of the verdict, and whether it was fixed afterwards")
    margin: str = means("Distance of the computed value from the limit of the criterion")
    command: str = means("Command that computes the value")
    note: str = means("Assumptions, and remarks on the value")


AFTERWARDS = "; fixed when the value was known"


def judge(claim: Claim, computed: Computed | None, paper: str = "") -> Finding:
    """Judges a claim; no other function sees both the printed and the computed value.

    Raises
    ------
    TypeError
        The criterion needs a number, but words were computed.
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
        notes.append(f"The printed value follows from {claim.evaluates.removesuffix('.')}.")
    if claim.reading:
        notes.append(f"Assumption: {claim.reading.removesuffix('.')}.")
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
    """Judges all claims of a paper, in the order of the claims.

    Raises
    ------
    KeyError
        A computed value belongs to no claim.
    """
    unknown = set(computed) - {claim.id for claim in claims}
    if unknown:
        raise KeyError(f"computed, but no claim of {paper}: {', '.join(sorted(unknown))}")
    return [judge(claim, computed.get(claim.id), paper) for claim in claims]


def claim_verdicts(findings: Iterable[Finding]) -> dict[str, Verdict]:
    """Returns the verdict of each claim, which is the first verdict in `_FIRST` that an item has.

    An item that fails without a reading decides first. Then an item that holds without a reading
    decides, and then a reading under which the claim holds.
    """
    items: dict[str, list[Verdict]] = {}
    for finding in findings:
        items.setdefault(finding.reading_of, []).append(finding.verdict)
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
"""Verdicts by precedence; a claim has the first of them that one of its items has."""


def _shown(value: Value | None) -> float | str | None:
    if isinstance(value, tuple):
        return ", ".join(f"{part:.6g}" if isinstance(part, float) else str(part) for part in value)
    return value
