"""Completion in the shell: keys typed at a terminal where the script is loaded."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import Run

START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
TYPED = {
    "opticoll ver": ["verify"],
    "opticoll verify tr": ["verify", "tree.plan"],
    "opticoll show tr": ["show", "tree.plan"],
    "opticoll simulate tr": ["simulate", "tree.plan"],
    "opticoll plan all_g": ["plan", "all_gather"],
    "opticoll plan all_gather --fab": ["plan", "all_gather", "--fabric"],
    "opticoll plan all_gather --fabric optree_p": [
        "plan",
        "all_gather",
        "--fabric",
        "optree_paper",
    ],
    "opticoll plan all_gather --fabric tree.": ["plan", "all_gather", "--fabric", "tree.plan"],
    "opticoll plan all_gather --algorithm relay_t": [
        "plan",
        "all_gather",
        "--algorithm",
        "relay_tree",
    ],
    "opticoll compare all_gather --algorithms ring,relay_t": [
        *("compare", "all_gather", "--algorithms", "ring,relay_tree")
    ],
    "opticoll plan all_gather --policy on_": ["plan", "all_gather", "--policy", "on_change"],
    "opticoll simulate tree.plan --per l": ["simulate", "tree.plan", "--per", "link"],
    "opticoll replay tree.plan --per c": ["replay", "tree.plan", "--per", "call"],
    "opticoll simulate tree.plan --per c": ["simulate", "tree.plan", "--per", "c"],
    "opticoll export all_gather --format rate_": [*("export", "all_gather", "--format", "rate_")],
    "opticoll show tree.plan --figure sub/pic": [
        "show",
        "tree.plan",
        "--figure",
        "sub/picture.svg",
    ],
}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_tab_completes_names_and_files(shell: str, run: Run, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = tmp_path / "completion"
    script.write_text(run("--completion", shell).out, encoding="utf-8")
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    for name in ("tree.plan", "sub/picture.svg"):
        (folder / name).touch()
    lines = [f". {script}", "opticoll() { printf '<%s>' \"$@\" >> ../said; echo >> ../said; }"]
    if shell == "zsh":
        lines.insert(0, "autoload -U compinit; compinit -u -D")
    keys = "".join(f"{line}\n" for line in [*lines, *(f"{one}\t" for one in TYPED), "exit"])
    typed_at(shell, keys, folder)
    said = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert [re.findall("<(.*?)>", line) for line in said] == list(TYPED.values())


def typed_at(shell: str, keys: str, folder: Path) -> None:
    """Types keys at the terminal of a shell, and waits for its end."""
    master, slave = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"}
    with subprocess.Popen(
        START[shell], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment
    ) as process:
        os.close(slave)
        os.write(master, keys.encode())
        try:
            while os.read(master, 4096):
                pass
        except OSError:  # The shell has ended.
            pass
        process.wait(timeout=60)
    os.close(master)


def test_fish_completes_names_and_files(run: Run, tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("there is no fish")
    (tmp_path / "completion").write_text(run("--completion", "fish").out, encoding="utf-8")
    (tmp_path / "tree.plan").touch()
    for line, words in TYPED.items():
        if "sub/" in line or "," in line or line.endswith(words[-1]):
            continue
        asks = ["fish", "--no-config", "-c", f"source completion; complete -C '{line}'"]
        done = subprocess.run(asks, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert words[-1] in re.split(r"[\t\n]", done.stdout), line


def test_completion_writes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for shell in ("bash", "zsh", "fish"):
        assert "verify" in run("--completion", shell).out
    assert run("--completion", "tcsh").code == 2
    assert list(tmp_path.iterdir()) == []
