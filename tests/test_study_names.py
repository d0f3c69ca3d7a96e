"""A study whose points would all fail for one reason is refused before anything is written."""

from pathlib import Path

import pytest

from support import Run

STUDY = """study: region
command: simulate
options: {{collective: all_gather, fabric: {fabric}, size: 1MiB, algorithm: ring}}
grid: {{{axis}: [1, 2]}}
"""


@pytest.mark.parametrize(
    ("fabric", "axis", "words"),
    [
        ("my.edges", "fabric.wavelenghts", "did you mean `wavelengths`?"),
        ("nsfnet", "fabric.wavelenghts", "did you mean `wavelengths`?"),
        ("my.edges", "sise", "`simulate` has no option `sise`; did you mean `size`?"),
        ("gone.edges", "fabric.wavelengths", "`gone.edges`"),
        ("gone.yaml", "fabric.wavelengths", "`gone.yaml`"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_name_that_no_point_can_have_is_one_error(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fabric: str,
    axis: str,
    words: str,
    more: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.edges").write_text("a b 3\nb c 4\n")
    Path("study.yaml").write_text(STUDY.format(fabric=fabric, axis=axis))
    finished = run("sweep", "study.yaml", *more)
    assert finished.code == 2
    assert words in finished.err
    assert "study.yaml" in finished.err
    assert finished.err.count("error") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"my.edges", "study.yaml"}


def test_options_may_follow_a_file_beside_the_study(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my.edges").write_text("a b 3\nb c 4\n")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.format(fabric='"my.edges:rate=1Gb/s"', axis="fabric.wavelengths"))
    finished = run("sweep", study, "--jobs", "1")
    assert finished.code == 0, finished.err
    assert "computed  2; 0 failed" in finished.out
