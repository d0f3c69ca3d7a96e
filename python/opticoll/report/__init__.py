"""Reports: one HTML file with tables and figures, which opens without a network.

A page has a part for each source: rows of a command, a plan, or a training.

>>> import opticoll
>>> from opticoll.report import document, parts
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
>>> part = parts.plan_part("ring", plan, "1MiB", {})
>>> part.kind, part.content["slots"][0]["messages"]
('plan', 4)
>>> document.html("A ring", [part]).startswith("<!DOCTYPE html>")
True
"""

from opticoll.report.document import write

__all__ = ["write"]
