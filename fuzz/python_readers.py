"""Fuzz targets for the readers in Python: `python fuzz/python_readers.py parquet|otf2 SECONDS`.

Whatever a file holds, it is read, or refused with an error of opticoll in one line. Parquet files
are changed byte by byte; OTF2 archives file by file, since a changed tar file is seldom one.
Needs the package `atheris`; what is found stays in `fuzz/artifacts`.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["opticoll.formats"]):
    from opticoll.formats import otf2_archive, parquet_table
    from opticoll.formats.content import read_content

from opticoll._core import read_trace
from opticoll.errors import OpticollError

FUZZ = Path(__file__).parent
ARCHIVE = FUZZ.parent / "tests/data/ep.A.16.otf2.tar.zst"
MOST_CHANGES = 8


def check_parquet(content: bytes) -> None:
    """A Parquet file is read or refused."""
    _check(lambda: parquet_table.table(content))


def archive_files() -> list[tuple[str, bytes]]:
    """The files of an archive by name."""
    with tarfile.open(fileobj=io.BytesIO(read_content(ARCHIVE))) as packed:
        members = [member for member in packed.getmembers() if member.isfile()]
        files = [(member.name, packed.extractfile(member)) for member in members]
        return [(name, file.read()) for name, file in files if file is not None]


def check_otf2(content: bytes) -> None:
    """An archive is read or refused after changes that the content names."""
    files = {name: bytearray(data) for name, data in archive_files()}
    names = sorted(files)
    source = atheris.FuzzedDataProvider(content)
    for _ in range(source.ConsumeIntInRange(0, MOST_CHANGES)):
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
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in names:
            header = tarfile.TarInfo(name)
            header.size = len(files[name])
            tar.addfile(header, io.BytesIO(files[name]))
    _check(lambda: otf2_archive.table(Path("changed.tar"), packed.getvalue()))


def _check(read) -> None:  # type: ignore[no-untyped-def]
    try:
        read_trace(read().encode(), "converted_table")
    except OpticollError as error:
        said = str(error)
        assert said
        assert "\n" not in said, said


CHECKS = {"parquet": check_parquet, "otf2": check_otf2}


def seed_parquet(folder: Path) -> None:
    """The seed of the event tables as Parquet."""
    from pyarrow import csv, parquet

    lines = (FUZZ / "seeds/event_table/calls.csv").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    rows = [line for line in rows if "Alltoallv" not in line]
    table = csv.read_csv(io.BytesIO("\n".join(rows).encode()))
    metadata = {"ranks": "4", "comm 1": "0 2", "app": "test"}
    parquet.write_table(table.replace_schema_metadata(metadata), folder / "seed.parquet")


def main(form: str, seconds: str) -> None:
    """Look for so many seconds."""
    corpus, artifacts = FUZZ / "corpus" / form, FUZZ / "artifacts" / form
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    if form == "parquet":
        seed_parquet(corpus)
    # Changes of an archive take few bytes, and should be tried from the start.
    lengths = {"parquet": ["-max_len=8192"], "otf2": ["-max_len=96", "-len_control=0"]}
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=3000", *lengths[form]]
    if form == "otf2":
        (corpus / "seed").write_bytes(bytes(range(96)))
    where = [str(corpus), f"-artifact_prefix={artifacts}/"]
    atheris.Setup([sys.argv[0], *where, *limits], CHECKS[form])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
