"""Large runs that were published: errors of `train` without a fitted constant."""

from __future__ import annotations

import published_runs


def test_runs_of_gpt_are_within_a_tenth() -> None:
    runs = [*published_runs.megascale(), *published_runs.eos(), *published_runs.megatron()]
    assert len(runs) == 12
    assert {run.case: run.error for run in runs if abs(run.error) > 0.1} == {}


def test_runs_of_llama_and_deepseek_are_within_a_sixth() -> None:
    runs = [*published_runs.llama(), *published_runs.deepseek()]
    assert {run.case: run.error for run in runs if abs(run.error) > 1 / 6} == {}
