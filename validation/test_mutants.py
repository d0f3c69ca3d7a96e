"""Files that are changed in one place: both verifiers reject them, or their bytes are right."""

from __future__ import annotations

import mutants_table


def test_mutants_are_rejected_by_both_verifiers_or_have_the_same_bytes() -> None:
    found = {row[0]: row for row in mutants_table.rows(most=3, processes=2)}
    for named in mutants_table.NAMES.values():
        _, files, tried, refused, rejected, _, equal = found[f"{named}, own"]
        numbers = [int(one.replace(",", "")) for one in (tried, refused, rejected, equal)]
        assert int(files) > 0
        assert numbers[0] == sum(numbers[1:])
        assert numbers[1] + numbers[2] > numbers[0] / 3
