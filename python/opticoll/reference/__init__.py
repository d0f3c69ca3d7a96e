"""What a plan means, in the plainest Python: a second verifier to check the first one by.

The verifier of the compiled core is fast, and hence not easy to believe by reading it. This one
is slow, shares not a line with it, imports nothing else of this package, and is meant to be read
from top to bottom: first what a plan is (`plan`), then how its text is read (`text`, see
``docs/plan-format.md``), then the rules (`rules`, and `grid` for grids of tunable circuits), each a
few lines over sets and dictionaries. It takes plans of some thousand transfers.

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
slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on cw fibre 0 from rank 0
"""

from __future__ import annotations

from opticoll.reference.plan import (
    CONVERTED,
    Collective,
    Fabric,
    Lightpath,
    NotAPlan,
    Plan,
    TooLarge,
)
from opticoll.reference.rules import Problem, verify, verify_text
from opticoll.reference.text import read

__all__ = [
    "CONVERTED",
    "Collective",
    "Fabric",
    "Lightpath",
    "NotAPlan",
    "Plan",
    "Problem",
    "TooLarge",
    "read",
    "verify",
    "verify_text",
]
