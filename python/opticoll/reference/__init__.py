"""A second verifier, in plain Python, which defines the meaning of plans and checks the core's.

The verifier of the compiled core is fast, and therefore hard to trust by reading it. This verifier
is slow and shares no code with the core or with other modules of this package. Read its modules in
this order: the plan (`plan`), the words of a plan's text (`words`), and one module for each kind of
fabric, from `links` (the shortest) to `ring`. Then read the list of families (`families`), the
reader of a plan's text (`text`, see ``docs/plan-format.md``), and the rules of all fabrics
(`rules`). Each rule is a few lines over sets and dictionaries. Plans may have up to a few thousand
transfers.

To add a family of fabrics, write a module and add a line to the list in `families`. This verifier
does not prove plans on families that are not in the list.

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
