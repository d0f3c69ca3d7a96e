"""Command `sweep`: computes the points of a study and stores the results."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from cyclopts import Group

from opticoll import memory
from opticoll._core import format_size
from opticoll.cli.option_types import argument, count, option
from opticoll.cli.runner import Command, on_command_line
from opticoll.errors import UsageError
from opticoll.formats.content import read_text
from opticoll.outputs.layout import align, human_seconds, plural
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Bytes, Count, Positive, Seconds
from opticoll.outputs.watch import Watch
from opticoll.study import clusters, document, engines, progress
from opticoll.study.expression import SIZE, Quantity
from opticoll.study.forecast import forecast
from opticoll.study.points import points
from opticoll.study.run import WHOLE, Shard, sweep
from opticoll.study.store import Store

CLUSTERS = Group("Clusters", sort_key=2)


PROFILE = "Profile of the {} jobs that compute points, in YAML (default: none)"
"""Help of the options that name a job manager."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Parameters of `opticoll sweep`."""

    study: Path = argument("Study: a YAML file with a command and axes")
    store: Path | None = option(
        "Store: an SQLite file, which studies may share (default: STUDY.sqlite)"
    )
    dry_run: bool = option(
        "Number of points and a forecast from a sample; nothing is stored", default=False
    )
    retry: bool = option("New computation of points that failed", default=False)
    jobs: int | None = count(
        "Number of worker processes, which share --memory-limit (default: one per core)", 4096
    )
    shard: str | None = option("Part of the study, such as 2/5, the second of five (default: all)")
    scheduler: str | None = option(
        "Address of a Dask scheduler, such as tcp://host:8786 (default: this machine)",
        group=CLUSTERS,
    )
    slurm: Path | None = option(PROFILE.format("SLURM"), group=CLUSTERS)
    pbs: Path | None = option(PROFILE.format("PBS"), group=CLUSTERS)
    lsf: Path | None = option(PROFILE.format("LSF"), group=CLUSTERS)
    merge: list[str] | None = option(
        "Store whose results are copied first, such as the store of a shard; one option for each "
        "(default: none)"
    )


DRY, NOT_DRY = "it was a dry run", "the sweep was not a dry run"


class FoundRow(Row):
    """A point that a search found."""

    point: Count = means("Number of the point in the study")
    what: str = means(
        "Kind of the point, such as the cheapest point, a break-even or a point of a front"
    )
    command: str = means("Command line that computes the point alone")


class SweepRow(Row):
    """Outcome of a sweep, or its forecast."""

    study: str = means("Name of the study")
    command: str = means("Command that computes the points")
    store: str = means("Path of the store")
    points: Positive = means("Number of points of the study, or of the shard")
    plans: Positive = means("Number of plans: points that share a plan count once")
    before: Count = means("Number of points whose result was in the store")
    computed: Count | None = means("Number of points that this sweep computed", absent=DRY)
    errors: Count | None = means("Number of points that have an error", absent=DRY)
    refuted: Count | None = means("Number of rows whose plan is violated", absent=DRY)
    found: list[FoundRow] = means("Points that a search found; empty for other studies")
    verified: bool = means("Whether no row has a violated plan")
    workers: Positive = means("Number of workers")
    sampled: Count | None = means("Number of points in the sample", absent=NOT_DRY)
    sample_failed: Count | None = means("Number of sampled points that failed", absent=NOT_DRY)
    sample_error: str | None = means(
        "Error of the first failed point of the sample",
        absent="the sweep was not a dry run, or none failed",
    )
    point_s: Seconds | None = means("Mean time of a point of the sample", absent=NOT_DRY)
    min_point_s: Seconds | None = means("Shortest time of a point of the sample", absent=NOT_DRY)
    max_point_s: Seconds | None = means("Longest time of a point of the sample", absent=NOT_DRY)
    forecast_s: Seconds | None = means(
        "Forecast of the time of the missing points, from the sample", absent=NOT_DRY
    )
    forecast_low_s: Seconds | None = means(
        "Lower end of the 95 % confidence interval of the forecast", absent=NOT_DRY
    )
    forecast_high_s: Seconds | None = means("Upper end of the confidence interval", absent=NOT_DRY)
    sample_complete: bool | None = means(
        "Whether the sample was computed within its time; if not, the forecast is a lower limit",
        absent=NOT_DRY,
    )
    peak_bytes: Bytes | None = means(
        "Maximum memory of a worker in the sample",
        absent="the sweep was not a dry run, or the system does not say",
    )
    job_script: str | None = means(
        "Script of one job of the cluster",
        absent="the sweep was not a dry run, or no job is asked for",
    )


def compute(parameters: Sweep, watch: Watch) -> Iterator[SweepRow]:
    """Computes the points of a study that the store lacks.

    Raises
    ------
    OpticollError
        The study is invalid, or the store cannot be written. Results stored before remain.
    """
    study = document.read(parameters.study)
    path = parameters.store or parameters.study.with_suffix(".sqlite")
    shard = WHOLE if parameters.shard is None else Shard.read(parameters.shard)
    workers = parameters.jobs or engines.processors()
    if parameters.dry_run:
        yield _forecast_row(parameters, study, path, shard, workers, watch)
        return
    with Store.open(path) as store:
        for name in parameters.merge or ():
            with Store.read(name) as other_store:
                watch.notes.append(
                    f"took over {plural(store.merge(other_store), 'result')} of {name}"
                )
        shown = progress.Progress(watch.update)
        engine = _engine(parameters, workers)
        try:
            done = sweep(
                study,
                store,
                engine,
                shard=shard,
                retry=parameters.retry,
                progress=shown,
                command=shlex.join(sys.argv),
                text=read_text(parameters.study, "study"),
            )
        except BaseException as failure:
            failure.add_note(f"{shown.line}; {path} keeps what is finished")
            raise
        findings = [
            FoundRow(point=number, what=description, command=command)
            for number, command, description in store.found(study.study)
        ]
    watch.failed = bool(done.errors)
    if done.errors:
        watch.notes.append(
            f"{plural(done.errors, 'point')} failed: `opticoll results {path} --failed` says why"
        )
    if study.optimise is not None and not findings:
        watch.notes.append("no verified point meets the conditions of the search")
    yield SweepRow.of(
        vars(done),
        study=study.study,
        command=study.command,
        store=str(path),
        found=findings,
        verified=not done.refuted,
        workers=engine.workers,
    )


def _jobs(parameters: Sweep) -> tuple[clusters.Manager, Path] | None:
    """Returns the job manager and its profile, or None; raises an error for several managers."""
    managers: dict[clusters.Manager, Path | None] = {
        "slurm": parameters.slurm,
        "pbs": parameters.pbs,
        "lsf": parameters.lsf,
    }
    stated_profiles = [
        (manager, profile) for manager, profile in managers.items() if profile is not None
    ]
    named = [f"--{manager}" for manager, _ in stated_profiles] + ["--scheduler"] * bool(
        parameters.scheduler
    )
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} are given; give one of them")
    if named and parameters.jobs is not None:
        raise UsageError(f"--jobs is for this machine; {named[0]} has workers of its own")
    return stated_profiles[0] if stated_profiles else None


def _engine(parameters: Sweep, workers: int) -> engines.Engine:
    """Returns the engine that computes the points: Dask, jobs, or this machine."""
    jobs = _jobs(parameters)
    if jobs is not None:
        return clusters.job_engine(*jobs)
    return (
        engines.Local(workers)
        if parameters.scheduler is None
        else clusters.Dask(parameters.scheduler)
    )


def _forecast_row(
    parameters: Sweep, study: document.Study, path: Path, shard: Shard, workers: int, watch: Watch
) -> SweepRow:
    """Returns the number of points, and a forecast from a sample of the missing points."""
    if parameters.merge:
        raise UsageError("--dry-run keeps nothing, so --merge cannot be given with it")
    jobs = _jobs(parameters)
    if jobs is not None:
        workers = clusters.workers_of(jobs[1])
    elif parameters.scheduler is not None:
        engine = clusters.Dask(parameters.scheduler)
        workers = engine.workers
        engine.close()
    mine = shard.of(points(study))
    every = [point for group in mine for point in group]
    missing = every
    if path.exists():
        with Store.read(path) as store:
            wanted = set(store.missing((point.key for point in every), retry=parameters.retry))
        missing = [point for point in every if point.key in wanted]
    watch.update("sampling", 0, 0)
    sampled = forecast(study.command, missing)
    if sampled.peak_bytes and (share := memory.share(workers)) and sampled.peak_bytes > share:
        watch.notes.append(
            f"a worker needs {format_size(sampled.peak_bytes)}, more than its share of the memory, "
            f"{format_size(share)}: try fewer --jobs"
        )
    return SweepRow.of(
        sampled,
        study=study.study,
        command=study.command,
        store=str(path),
        points=len(every),
        plans=len(mine),
        before=len(every) - len(missing),
        found=[],
        verified=True,
        workers=workers,
        forecast_s=sampled.seconds(workers),
        forecast_low_s=sampled.interval(workers)[0],
        forecast_high_s=sampled.interval(workers)[1],
        job_script=None if jobs is None else clusters.job_script(*jobs),
    )


def _points(row: SweepRow) -> str:
    """Returns the number of points, with the number of plans if points share plans."""
    if row.plans == row.points:
        return f"{row.points}"
    return f"{row.points}; some share a plan, which makes {row.plans} plans"


def _text(parameters: Sweep, rows: list[SweepRow]) -> str:
    (row,) = rows
    facts = [
        ["study", f"{row.study}, of `opticoll {row.command}`"],
        ["points", _points(row)],
        ["store", f"{row.store}: {row.before} were there"],
    ]
    if row.forecast_s is not None and row.point_s is not None:
        least = "" if row.sample_complete else "at least "
        span = f"{human_seconds(row.min_point_s or 0)} to {human_seconds(row.max_point_s or 0)}"
        workers = plural(row.workers, "worker")
        ends = [
            progress.duration(bound_s or 0) for bound_s in (row.forecast_low_s, row.forecast_high_s)
        ]
        spread = f" ({ends[0]} to {ends[1]}, 95 %)" if row.sample_complete else ""
        facts += [
            ["sample", f"{plural(row.sampled or 0, 'point')}, {least}{span} each"],
            ["forecast", f"{least}{progress.duration(row.forecast_s)} on {workers}{spread}"],
        ]
        if row.sample_failed:
            part = f"{row.sample_failed} of {plural(row.sampled or 0, 'point')}"
            facts.append(["failed", f"{part} of the sample; the first: {row.sample_error}"])
        if row.peak_bytes is not None:
            facts.append(["memory", f"{Quantity(Fraction(row.peak_bytes), SIZE).rounded()} each"])
        script = "" if row.job_script is None else f"\n\n{row.job_script.strip()}"
        return f"{align(facts)}{script}"
    facts.append(["computed", f"{row.computed}; {row.errors} failed"])
    if row.refuted:
        facts.append(["violated", f"{plural(row.refuted, 'plan')}"])
    findings = [f"\n{found_row.what}\n    {found_row.command}" for found_row in row.found]
    return "\n".join([align(facts), *findings])


COMMAND = Command(
    name="sweep",
    example="opticoll sweep examples/study.yaml --dry-run",
    parameters=Sweep,
    rows=SweepRow,
    compute=compute,
    text=_text,
    progress_label="reading the study",
    shape="row",
)
command_line = on_command_line(COMMAND)
