"""A second verifier in the plainest Python: it defines what a plan means and checks the first.

The verifier of the compiled core is fast, and therefore hard to trust by reading it. This verifier
is slow, shares no code with it, imports nothing else of this package, and is meant to be read
from top to bottom: first the plan (`plan`), then the words of its text (`words`), then the
families of fabrics, a module each with its options, its light and the rules of that (from `links`,
the shortest, to `ring`), and the list of them (`families`), then the reader of a plan's text
(`text`, see ``docs/plan-format.md``), then the rules of any fabric (`rules`). Each rule is a few
lines over sets and dictionaries. The verifier is for plans of up to a few thousand transfers.

A new family is a module and a line of the list. Nothing is proved for fabrics of other families.

>>> text = '''opticoll plan 1
... collective broadcast ranks=3 root=0 pieces=1
... fabric wdm_ring:ranks=3,wavelengths=1
... algorithm by hand
... steps 1
... slot 0
... copy 0 0>1 cw 0.0
... copy 0 0>2 cw 0.0
... end 2
... '''
>>> for sentence in verify_text(text):
...     print(sentence)
slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on cw fibre 0 from node 0
"""

from __future__ import annotations

from opticoll.reference.plan import Collective, NotAPlan, Plan, Problem, TooLarge, Transfer
from opticoll.reference.rules import verify, verify_text
from opticoll.reference.text import read

__all__ = [
    "Collective",
    "NotAPlan",
    "Plan",
    "Problem",
    "TooLarge",
    "Transfer",
    "read",
    "verify",
    "verify_text",
]
