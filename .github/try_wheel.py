"""Installs the wheel of a folder that fits this machine into an empty environment, and uses it.

The folder is the argument: `python .github/try_wheel.py dist`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PLAN = "plan all_gather --fabric wdm_ring:ranks=16,wavelengths=4 --size 1MiB --output a.plan"
SCRIPT = "import opticoll; assert opticoll.read_plan('a.plan').verify() == []"


def main(wheels: Path) -> None:
    """Plan, verify and draw with the wheel alone."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"

        def run(*arguments: str | Path) -> None:
            subprocess.run([python, *arguments], cwd=home, check=True)

        # pip picks the wheel from the folder alone: a package index may have another opticoll.
        local = ["--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", wheels]
        run("-m", "pip", "download", *local, "opticoll")
        (wheel,) = home.glob("*.whl")
        run("-m", "pip", "install", "--quiet", wheel)
        run("-m", "opticoll", "--version")
        run("-m", "opticoll", *PLAN.split())
        run("-m", "opticoll", "verify", "a.plan")
        run("-m", "opticoll", "show", "a.plan", "--slot", "0", "--figure", "a.svg")
        run("-c", SCRIPT)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
