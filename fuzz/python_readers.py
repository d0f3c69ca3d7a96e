"""Fuzz targets for the readers in Python: `python fuzz/python_readers.py TARGET SECONDS`.

A target is one of `python_checks.CHECKS`, or `otf2`, which changes the files of an archive one by
one, because a changed tar file is seldom a tar file. The script needs the package `atheris` and
leaves its findings in `fuzz/artifacts`.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["opticoll", "ruamel.yaml", "tarfile"]):
    import python_checks
    import ruamel.yaml  # noqa: F401 (imported late otherwise, hence not watched)

from python_checks import CHECKS, FUZZ

MAX_CHANGES = 8


def check_otf2(content: bytes) -> None:
    """Checks the reader of archives after the changes that the content encodes."""
    files = {name: bytearray(data) for name, data in python_checks.archive_files()}
    names = sorted(files)
    source = atheris.FuzzedDataProvider(content)
    for _ in range(source.ConsumeIntInRange(0, MAX_CHANGES)):
        data = files[names[source.ConsumeIntInRange(0, len(names) - 1)]]
        at = source.ConsumeIntInRange(0, max(len(data) - 1, 0))
        match source.ConsumeIntInRange(0, 3):
            case 0:
                data[at : at + 1] = source.ConsumeBytes(1)
            case 1:
                data[at:at] = source.ConsumeBytes(4)
            case 2:
                del data[at : at + source.ConsumeIntInRange(1, 16)]
            case _:
                del data[at:]
    python_checks.check_tar(python_checks.pack(files))


def seed_parquet(folder: Path) -> None:
    """Writes the seed of the event tables as a Parquet file."""
    from pyarrow import csv, parquet

    lines = (FUZZ / "seeds/event_table/calls.csv").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    rows = [line for line in rows if "Alltoallv" not in line]
    table = csv.read_csv(io.BytesIO("\n".join(rows).encode()))
    metadata = {"ranks": "4", "comm 1": "0 2", "app": "test"}
    parquet.write_table(table.replace_schema_metadata(metadata), folder / "seed.parquet")


def seed(target: str, folder: Path) -> None:
    """Puts the seeds of a target into the folder of its corpus."""
    if target == "parquet":
        seed_parquet(folder)
    elif target == "otf2":
        (folder / "seed").write_bytes(bytes(range(96)))
    elif target == "tar":
        files = [(name, bytearray(data)) for name, data in python_checks.archive_files()]
        (folder / "seed.tar").write_bytes(python_checks.pack(dict(files[:2])))
    else:
        shutil.copytree(FUZZ / "seeds" / target, folder, dirs_exist_ok=True)


def main(target: str, seconds: str) -> None:
    """Searches for this number of seconds."""
    corpus, artifacts = FUZZ / "corpus" / target, FUZZ / "artifacts" / target
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    seed(target, corpus)
    longest = {"parquet": 8192, "tar": 8192, "otf2": 96}.get(target, 2048)
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=3000"]
    # Changes of an archive take few bytes, and should be tried from the start.
    limits += [f"-max_len={longest}", *(["-len_control=0"] if target == "otf2" else [])]
    check = check_otf2 if target == "otf2" else CHECKS[target]
    where = [str(corpus), f"-artifact_prefix={artifacts}/"]
    atheris.Setup([sys.argv[0], *where, *limits], lambda content: check(content) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
