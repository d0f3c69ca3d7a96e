"""What a plan means, in the plainest Python: a second verifier to check the first one by.

The verifier of the compiled core is fast, and hence not easy to believe by reading it. This one
is slow, shares not a line with it, imports nothing else of this package, and is meant to be read
from top to bottom: first what a plan is (`plan`), then what its words mean (`words`), then the
families of fabrics, a module each with its options, its light and the rules of that (from `links`,
the shortest, to `ring`), and the list of them (`families`), then how the text of a plan is read
(`text`, see ``docs/plan-format.md``), then the rules of any fabric (`rules`). Each rule is a few
lines over sets and dictionaries. It takes plans of some thousand transfers.

A new family is a module and a line of the list. For a fabric of no family listed nothing is proved.

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
