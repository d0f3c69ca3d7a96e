"""Studies on clusters: the same results, whatever dies; job scripts as the managers take them."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.study import clusters, document
from opticoll.study.run import sweep
from opticoll.study.store import Store
from support import Run, written_study
from test_studies import CROSSBAR, OWN, SLOW, finished_points, table

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as started:
        yield started


def test_a_dask_cluster_computes_the_same_bytes_when_a_worker_is_killed(
    run: Run, tmp_path: Path, cluster: Any
) -> None:
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"
    victims = [worker.pid for worker in cluster.workers.values()]

    def kill_one() -> None:
        while finished_points(store) < 4:
            time.sleep(0.02)
        os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    finished = run("sweep", study, "--scheduler", cluster.scheduler_address)
    killer.join()
    assert finished.code == 0, finished.err
    assert "computed  48; 0 failed" in finished.out
    opticoll.sweep(study, tmp_path / "local.sqlite")
    assert table(store, run) == table(tmp_path / "local.sqlite", run)


def test_a_point_that_kills_its_workers_is_an_error(tmp_path: Path, cluster: Any) -> None:
    written_study(tmp_path, OWN, "own_algorithm.py")
    study = written_study(
        tmp_path, CROSSBAR + "grid: {algorithm: [ring, 'own_algorithm:kills', auto]}\n"
    )
    with Store.open(tmp_path / "study.sqlite") as store:
        done = sweep(document.read(study), store, clusters.Dask(cluster.scheduler_address))
        assert (done.computed, done.errors) == (3, 1)
        (error,) = [one.result.error for one in store.results() if one.result and one.result.error]
    assert error.startswith("the workers died at it")


def test_workers_of_another_build_are_refused(
    run: Run, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "build", lambda: "of another opticoll")
    study = written_study(tmp_path, CROSSBAR + "grid: {algorithm: [ring, auto]}\n")
    finished = run("sweep", study, "--scheduler", cluster.scheduler_address)
    assert finished.code == 2
    assert "have another build of opticoll" in finished.err
    assert finished_points(tmp_path / "study.sqlite") == 0


def test_no_scheduler_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda where, timeout: client(where, timeout=0.2))
    finished = run("sweep", written_study(tmp_path, SLOW), "--scheduler", "tcp://127.0.0.1:9")
    assert finished.code == 2
    assert "there is no Dask scheduler at `tcp://127.0.0.1:9`" in finished.err


SLURM = """#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -p batch
#SBATCH -A optics
#SBATCH -n 1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH -t 02:00:00
#SBATCH --constraint=ib

PYTHON -m distributed.cli.dask_worker ADDRESS --name dummy-name --nthreads 1 --memory-limit 1.86GiB
 --nworkers 4 --nanny --death-timeout 60
"""

PROFILE = """
jobs: 8
cores: 4
memory: 8GB
queue: batch
account: optics
walltime: "02:00:00"
job_extra_directives: [--constraint=ib]
"""


def plain(script: str) -> str:
    return re.sub(r"tcp://\S+", "ADDRESS", re.sub(r"\S+/python\S*", "PYTHON", script)).strip()


def test_a_slurm_script_asks_for_what_the_profile_says(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    profile = written_study(tmp_path, PROFILE, "slurm.yaml")
    script = clusters.job_script("slurm", profile)
    assert plain(script) == SLURM.replace("GiB\n --nworkers", "GiB --nworkers").strip()
    study = written_study(tmp_path, CROSSBAR)
    printed = run("sweep", study, "--dry-run", "--slurm", profile).out
    assert "#SBATCH --constraint=ib" in printed
    assert "points    1\n" in printed


@pytest.mark.parametrize(
    ("manager", "walltime", "line"),
    [
        ("pbs", "02:00:00", "#PBS -l select=1:ncpus=4:mem=7630MB"),
        ("lsf", "02:00", '#BSUB -R "span[hosts=1]"'),
    ],
)
def test_other_managers_have_scripts(
    tmp_path: Path, manager: clusters.Manager, walltime: str, line: str
) -> None:
    pytest.importorskip("dask_jobqueue")
    text = f"cores: 4\nmemory: 8GB\nqueue: batch\nwalltime: '{walltime}'\n"
    script = clusters.job_script(manager, written_study(tmp_path, text, "profile.yaml"))
    assert line in script
    assert "--nworkers 4" in script


def test_wrong_profiles_are_refused(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    study = written_study(tmp_path, CROSSBAR)
    for text, told in (
        ("cores: 4\nmemory: 8GB\nnothing: 3\n", "have no field `nothing`"),
        ("cores: 4\nmemory: 8GB\nqueu: batch\n", "no field `queu`; did you mean `queue`?"),
        ("queue: batch\n", "You must specify how much cores"),
        ("jobs: many\n", "line 1, jobs: `many` is not a whole number"),
    ):
        profile = written_study(tmp_path, text, "slurm.yaml")
        finished = run("sweep", study, "--slurm", profile, "--dry-run")
        assert (finished.code, told in finished.err) == (2, True), finished.err
    finished = run("sweep", study, "--slurm", profile, "--pbs", profile)
    assert "--slurm and --pbs are given; give one of them" in finished.err
