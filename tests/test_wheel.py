"""The wheel in an empty environment: a machine with Python and without Rust."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import opticoll
from support import ALL_CASES, BROAD

ROOT = Path(__file__).parents[1]


# In the forge, `.github/try_wheel.py` tries each wheel on each system.
@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of programs of an environment that has only the wheel."""
    if not ALL_CASES:
        pytest.skip(BROAD)
    folder = tmp_path_factory.mktemp("wheel")
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent))
    assert maturin is not None
    # The profile is already built; the job that makes wheels tests the optimised profile.
    build = [maturin, "build", "--profile", "quick", "--out", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    assert "-abi3-" in wheel.name
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", wheel], check=True)
    return programs


def said(program: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program without anything of this environment."""
    clean = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [program, *arguments], cwd=folder, env=clean, capture_output=True, text=True
    )


def test_a_wheel_plans_and_proves_without_rust(installed: Path, tmp_path: Path) -> None:
    plan = "plan all_gather --fabric wdm_ring:ranks=16,wavelengths=4 --size 1MiB --output a.plan"
    made = said(installed / "opticoll", *plan.split(), folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "; verified" in made.stdout.splitlines()[0]
    proved = said(installed / "opticoll", "verify", "a.plan", folder=tmp_path)
    assert proved.returncode == 0
    script = "import opticoll; print(opticoll.read_plan('a.plan').verify())"
    assert said(installed / "python", "-c", script, folder=tmp_path).stdout == "[]\n"
    drawn = said(installed / "opticoll", "show", "a.plan", "--figure", "a.svg", folder=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_the_version_comes_from_one_place(installed: Path, tmp_path: Path) -> None:
    with (ROOT / "Cargo.toml").open("rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    expected = f"opticoll {version}\n"
    assert said(installed / "opticoll", "--version", folder=tmp_path).stdout == expected
    asked = said(installed / "python", "-m", "opticoll", "--version", folder=tmp_path)
    assert asked.stdout == expected
    assert opticoll.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'\nversion = "{version}"\n' in (ROOT / "papers" / "pyproject.toml").read_text("utf-8")


def test_a_missing_extra_is_named_where_it_is_needed(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "run.parquet").write_bytes(b"PAR1 PAR1")
    refused = said(installed / "opticoll", "replay", "run.parquet", folder=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'otf2" in refused.stderr
    refused = said(installed / "opticoll", "reproduce", "optree", folder=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'opticoll-papers" in refused.stderr


def test_dependencies_have_upper_bounds_above_the_versions_that_are_tested() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"].values()
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"]
    tested = {name.lower(): version for name, version in (line.split("==") for line in pins)}
    for line in [*project["dependencies"], *(line for extra in extras for line in extra)]:
        needed = Requirement(line)
        assert any(one.operator == "<" for one in needed.specifier), line
        assert needed.name not in tested or tested[needed.name] in needed.specifier, line
