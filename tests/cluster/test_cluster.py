"""Runs on a cluster: the same records as without one, whatever happens to its workers."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from dask import config
from distributed import SpecCluster, Status
from distributed.comm.core import connect as dask_connect
from distributed.security import Security

from nqbench.analysis.data.dataset import load_dataset
from nqbench.cluster import connect, host
from nqbench.cluster.connect import (
    ClusterTarget,
    WorkerPart,
    check_address,
    connected,
    described,
    gpu_workers,
    local,
    quiet_dask,
)
from nqbench.cluster.devices import ClusterSite
from nqbench.cluster.host import Offer
from nqbench.cluster.members import Cluster, unfit
from nqbench.devices.cuda import query
from nqbench.errors import DeviceLost, DeviceUnavailable, StudyError
from nqbench.measure.device_threads import StudyRequest, run_on_site
from nqbench.measure.run_state import RunOutcome
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.reading import read_manifest, read_records
from nqbench.study import Measure
from tests.cli.call import ROOT, call
from tests.measure import toy
from tests.measure.test_pool import wait_until
from tests.toys import Recorder, ToyStudy, run_here

QUICK = ROOT / "configs" / "quick.yaml"
TIMES = ("started", "wall_s", "spent_s", "worker")
"""What may differ between two runs of deterministic points: times, and the process."""
GPUS = tuple(f"fake:seed={i},noise=0.003" for i in range(3))
DEVICE = "fake:deterministic=1"
INHERITED = "DASK_INTERNAL_INHERIT_CONFIG"
TLS = "distributed.comm.tls."
TIMED = Measure(rounds=1, samples=5, budget_s=1.0)


def toy_points(count: int, n: int = 11) -> list[Point]:
    """Points of one size that differ in their flavour."""
    return [toy.point(n, flavour=f"{i:02}") for i in range(count)]


def part(number: int) -> WorkerPart:
    """A worker with one core, its CPU, and a test device of its own: three GPUs of one model."""
    gpu = Offer(GPUS[number], "fake", "fake device (test)", "", f"nqbench-fake-{number}")
    cpu = Offer("cpu", "cpu", "cpu", "", "nqbench-cpu-test")
    return WorkerPart((gpu, cpu) if number == 0 else (gpu,), 1)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The scheduler of a local cluster of three worker processes. A test may end one of them that
    comes back; the last test ends one for good."""
    parts = [part(number) for number in range(3)]
    with quiet_dask(workers=True), local(parts) as cluster, certified(cluster):
        address = cluster.scheduler_address
        with connected(ClusterTarget(scheduler=address), lambda _: None) as found:
            wait_until(lambda: len(found.look()) == 3)
        yield address


@contextmanager
def certified(cluster: SpecCluster) -> Iterator[None]:
    """Whoever connects has the certificates of a cluster, as from Dask's file of settings."""
    security: Any = cluster.security
    named = ("ca_file", "client_cert", "client_key", "worker_cert", "worker_key")
    found = {name: getattr(security, f"tls_{name}") for name in named}
    with config.set(
        {TLS + name.replace("_", "-" if "_f" in name else "."): found[name] for name in found}
    ):
        yield


@pytest.fixture
def cluster(address: str) -> Iterator[Cluster]:
    """A connection with all three workers there."""
    notes: list[str] = []
    with connected(ClusterTarget(scheduler=address), notes.append) as found:
        wait_until(lambda: len(found.look()) == 3)
        found.notes = notes  # type: ignore[attr-defined]
        yield found


class Meddler(Recorder):
    """A listener that does something once after so many records."""

    def __init__(self, after: int = 0, act: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.after, self.act = after, act
        self._lock = threading.Lock()  # several devices report at a time

    def device(self, name: str) -> Meddler:
        return self

    def advanced(self, record: Any = None) -> None:
        with self._lock:
            super().advanced(record)
            due = len(self.records) == self.after
        if due:
            self.act()


def on(
    cluster: Cluster,
    wanted: str,
    out: Path,
    points: Sequence[Point],
    how: Measure = TIMED,
    listener: Meddler | None = None,
) -> RunOutcome:
    """Run a toy study on the cluster."""
    study = ToyStudy(points, how)
    request = StudyRequest(study, lambda _: study.points, lambda _: out)
    (outcome,) = run_on_site(request, ClusterSite(cluster, wanted), listener or Meddler())
    return outcome


def without(out: Path, points: Sequence[Point]) -> None:
    """The same study in this process."""
    study = ToyStudy(points, TIMED)
    run_here(study, DEVICE, out)


def lines(path: Path) -> list[str]:
    """The records of a run without what may differ, in order of their keys."""
    found = [record.as_json() for record in read_records(path).records]
    for record in found:
        for name in TIMES:
            del record[name]
        record["about"].pop("simulation_s", None)
    return sorted(json.dumps(record) for record in found)


def test_a_simulated_study_gives_the_same_records_as_without_a_cluster(
    address: str, tmp_path: Path
) -> None:
    words = ("run", QUICK, "--no-report", "--device", "sim:mini", "--out")
    ours, plain = tmp_path / "ours", tmp_path / "plain"
    done = call(*words, ours, "--scheduler", address, cwd=tmp_path)
    assert (done.code, "16 of 16 points right" in done.out) == (0, True), done.said
    assert "sim:mini: counting variants in the simulator: 16" in done.err
    assert call(*words, plain, cwd=tmp_path).code == 0
    assert lines(ours) == lines(plain)
    manifests = [read_manifest(path) for path in (ours, plain)]
    differing = {n for n in manifests[0] if manifests[0][n] != manifests[1][n]}
    assert differing <= {"created", "seed", "history", "command"}
    assert len({record.worker for record in read_records(ours).records}) == 3
    again = call(*words, ours, cwd=tmp_path)
    assert "nothing was measured" in again.err or "resumed: 16" in again.err


def test_lost_late_workers_change_no_record(cluster: Cluster, address: str, tmp_path: Path) -> None:
    points = toy_points(24)
    victim = next(iter(cluster.look()))
    pid = cluster.client.run(os.getpid, workers=[victim])[victim]
    late: list[subprocess.Popen[str]] = []

    def trouble() -> None:
        os.kill(pid, signal.SIGKILL)
        late.append(worker(address))
        wait_until(lambda: victim not in cluster.look() and len(cluster.look()) == 4)

    listener = Meddler(5, trouble)
    try:
        outcome = on(cluster, DEVICE, tmp_path / "cluster", points, listener=listener)
    finally:
        for process in late:
            process.send_signal(signal.SIGINT)
            process.communicate()
    without(tmp_path / "plain", points)
    assert outcome.counts == {"ok": 24}
    assert lines(tmp_path / "cluster") == lines(tmp_path / "plain")
    assert not cluster.notes  # type: ignore[attr-defined]


def worker(address: str) -> subprocess.Popen[str]:
    """``nqbench worker`` for the simulator, in a process of its own."""
    known = config.global_config
    return subprocess.Popen(
        [sys.executable, "-m", "nqbench", "worker", address, "--gpus", "none"],
        env={**os.environ, "PYTHONPATH": str(ROOT), INHERITED: config.serialize(known)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def shift_clocks(hours: float) -> None:
    """Let a worker's time of day be wrong."""
    told: Any = SimpleNamespace(**vars(time))
    told.time = lambda: time.time() + 3600 * hours
    vars(host)["time"] = told


def test_machines_need_not_agree_on_the_time(cluster: Cluster, tmp_path: Path) -> None:
    study = ToyStudy(toy_points(3), TIMED)
    request = StudyRequest(study, lambda _: study.points, lambda _: tmp_path / "r", budget_s=600)
    cluster.client.run(shift_clocks, 1.0)
    try:
        (outcome,) = run_on_site(request, ClusterSite(cluster, DEVICE), Meddler())
    finally:
        cluster.client.run(shift_clocks, 0.0)
    assert outcome.counts == {"ok": 3}


def test_a_lost_scheduler_keeps_finished_points_and_resumes(address: str, tmp_path: Path) -> None:
    points = toy_points(12)
    out = tmp_path / "r"
    with (
        local([part(1)]) as other,
        certified(other),
        connected(ClusterTarget(scheduler=other.scheduler_address), print) as own,
    ):
        listener = Meddler(4, other.close)
        with pytest.raises(DeviceLost, match="kept, run again to resume"):
            on(own, DEVICE, out, points, listener=listener)
    kept = read_records(out).records
    assert len(kept) == 4
    with connected(ClusterTarget(scheduler=address), print) as own:
        assert on(own, DEVICE, out, points).counts == {"ok": 12}
    assert read_records(out).records[: len(kept)] == kept
    assert len(read_records(out).records) == 12


@pytest.mark.parametrize("stranger", ["plain", "without certificates", "with others"])
def test_another_user_of_this_computer_cannot_connect(stranger: str, cluster: Cluster) -> None:
    own = cluster.client.security
    theirs = {"with others": Security.temporary()}.get(
        stranger, Security(require_encryption=False, tls_ca_file=None)
    )
    workers = cluster.client.scheduler_info(n_workers=-1)["workers"].items()
    scheduler = cluster.client.scheduler.address  # type: ignore[union-attr]
    for address in (scheduler, *(a for worker, known in workers for a in (worker, known["nanny"]))):
        assert address.startswith("tls://127.0.0.1:")
        asyncio.run(reach(address, own))
        with pytest.raises((OSError, TypeError)):
            asyncio.run(
                reach(address.replace("tls", "tcp" if stranger == "plain" else "tls"), theirs)
            )


def test_no_page_tells_what_a_cluster_does(cluster: Cluster) -> None:
    port = cluster.client.scheduler_info()["services"]["dashboard"]
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"http://127.0.0.1:{port}/info/main/workers.html")


async def reach(address: str, security: Security) -> None:
    """Open a connection, which includes that both sides greet."""
    comm = await dask_connect(address, timeout=5, **security.get_connection_args("client"))
    await comm.close()


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (("--device", "cuda"), "no worker has a device 'cuda'; their devices are: cpu, fake"),
        (("--gpus", "all"), "--gpus and --scheduler name two clusters"),
        (("--dry-run",), "name no cluster"),
    ],
)
def test_impossible_requests(address: str, extra: Sequence[str], said: str, tmp_path: Path) -> None:
    refused = call("run", QUICK, "--scheduler", address, *extra, cwd=tmp_path)
    assert (refused.code, said in refused.err) == (2, True), refused.said


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        ("all", [("cuda:0", "cpu"), ("cuda:1",), ("cuda:2",)]),
        ("1", [("cuda:1", "cpu")]),
        ("2,0", [("cuda:2", "cpu"), ("cuda:0",)]),
        ("3", "there is no cuda:3; here are cuda:0, cuda:1, cuda:2"),
        ("0,0", "names a GPU twice"),
        ("first", "takes `all` or numbers"),
    ],
)
def test_each_gpu_of_this_computer_gets_a_worker(
    gpus: str, found: str | list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = ("cuda:0", "cuda:1", "cuda:2")
    here = [Offer(s, s.partition(":")[0], s, "", f"nqbench-{s}") for s in (*specs, "cpu")]
    monkeypatch.setattr(query, "find_gpus", lambda: dict.fromkeys(specs))
    monkeypatch.setattr(connect, "offers", lambda: here)
    monkeypatch.setattr(connect, "cpu_count", lambda: 12)
    if isinstance(found, str):
        with pytest.raises((StudyError, DeviceUnavailable), match=found):
            gpu_workers(gpus)
        return
    parts = gpu_workers(gpus)
    assert [tuple(offer.spec for offer in part.offers) for part in parts] == found
    assert {part.cores for part in parts} == {12 // len(found)}
    options = parts[0].options()
    assert options["env"][host.DEVICES] == ";".join(found[0])
    assert options["resources"] == {"cores": 12 // len(found), f"nqbench-{found[0][0]}": 1} | {
        "nqbench-cpu": 1
    }


@pytest.mark.parametrize(
    ("address", "insecure", "said"),
    [
        ("tcp://127.0.0.1:8786", False, ""),
        ("tcp://localhost:8786", False, ""),
        ("tcp://[::1]:8786", False, ""),
        ("tls://node0:8786", False, ""),
        ("tcp://node0:8786", True, ""),
        ("tcp://node0:8786", False, "neither on this computer nor encrypted"),
        ("tcp://0.0.0.0:8786", False, "neither on this computer nor encrypted"),
        ("tcp://192.168.1.7:8786", False, "neither on this computer nor encrypted"),
        ("node0", True, "no address of a scheduler"),
        ("tcp://node0", True, "no address of a scheduler"),
        ("http://127.0.0.1:8786", True, "no address of a scheduler"),
        ("tcp://127.0.0.1:port", True, "no address of a scheduler"),
    ],
)
def test_addresses_beyond_this_host_are_encrypted(address: str, insecure: bool, said: str) -> None:
    with pytest.raises(StudyError, match=said) if said else nullcontext():
        check_address(address, insecure)


@pytest.mark.parametrize(
    ("text", "insecure", "said"),
    [
        ("ssh: {hosts: [a, b]}", True, ""),
        ("slurm: {cores: 2, n_workers: 3}", False, ""),
        ("ssh: {hosts: [a, b]}", False, "listen on their network without encryption"),
        ("ssh: {hosts: [a, b]}\njobs: 2", True, "nothing else"),
        ("slurm: {cores: 2}\ntls: temporary", True, "its certificates need no tls"),
        ("ssh: {}\nslurm: {}", True, "one of Dask's clusters"),
        ("ssh: [a, b]", True, "one of Dask's clusters"),
        ("slrum: {}", True, "under ssh: or slurm:"),
        ("- ssh", True, "one of Dask's clusters"),
        ("ssh: {hosts: [", True, "cannot be read"),
    ],
)
def test_cluster_files(text: str, insecure: bool, said: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(StudyError, match=said) if said else nullcontext():
        described(file, insecure)


def test_a_batch_system_that_refuses_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, sbatch = tmp_path / "cluster.yaml", tmp_path / "sbatch"
    file.write_text(f"slurm: {{cores: 1, memory: 1GB, shared_temp_directory: {tmp_path}}}")
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ctrl_c = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(StudyError, match=r"slurm: .* sbatch: error: invalid partition"),
        config.set({f"{TLS}ca-file": None}),  # of the cluster that other tests use
        connected(ClusterTarget(file=file), lambda _: None),
    ):
        pass
    assert signal.getsignal(signal.SIGINT) is ctrl_c
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # dask-jobqueue leaves the files of its certificates open


def test_a_worker_with_other_software_is_left_out_with_one_sentence() -> None:
    own = host.software()
    theirs = {**own, "Python": "3.9.1", "nqbench": "0.0"}
    said = unfit({"host": "node7", "software": theirs}, own)
    assert "node7 has nqbench 0.0 instead of" in said
    assert "Python 3.9.1 instead of" in said
    assert not unfit({"host": "node7", "software": own}, own)
    assert "install nqbench" in unfit(ModuleNotFoundError("No module named 'nqbench'"), own)


@pytest.mark.parametrize("device", ["cpu", "sim:mini"])
def test_a_count_over_all_workers(address: str, device: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ("count", 8, "--device", device, "--scheduler", address, "--log", log)
    done = call(*words)
    assert (done.code, "a(8) = 92" in done.out) == (0, True), done.said
    assert sum(json.loads(line).get("count", 1) for line in log.read_text().splitlines()[1:]) == 78
    assert "78 chunks, 78 of them from" in call(*words).out


def test_each_gpu_measures_its_points_in_fresh_processes_and_a_lost_ones_go_to_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.lost_s = 0.0
    pids: list[int] = []
    points = [p for n in (8, 9) for p in toy_points(6, n)]

    def lose_one() -> None:
        device = listener.records[listener.after - 1].device  # its thread waits in here
        (address,) = (a for a, m in cluster.members.items() if device in str(m.devices))
        cluster.client.run(stay_dead, workers=[address], nanny=True)
        pids.extend(cluster.client.run(os.getpid, workers=[address]).values())
        os.kill(pids[0], signal.SIGKILL)

    threads = cluster.client.run(os.environ.get, "OMP_NUM_THREADS")
    assert {*threads.values()} == {os.environ.get("OMP_NUM_THREADS")}, "as without a cluster"
    listener = Meddler(5, lose_one)  # of six: while its device verifies
    outcome = on(cluster, "fake", tmp_path / "r", points, listener=listener)
    assert pids
    assert outcome.counts == {"ok": 12}
    manifest = read_manifest(tmp_path / "r")
    keys = {point["key"] for point in manifest["points"]}
    final = [r for r in read_records(tmp_path / "r").records if r.key in keys]
    assert Counter(r.round for r in final) == {0: 12, 1: 12}
    rounds: dict[tuple[int, int], list[Record]] = {}
    for r in final:
        rounds.setdefault((r.point["factors"]["n"], r.round), []).append(r)
    assert all(len({r.device for r in one}) == 1 for one in rounds.values()), "on one GPU"
    assert all(len({r.worker for r in one}) == 1 for one in rounds.values()), "in one process"
    assert len({r.worker for r in final}) == len(rounds), "a fresh one"
    assert all([r.order for r in one] == [*range(6)] for one in rounds.values())
    for point in manifest["points"]:
        (device,) = {r.device for r in final if r.key == point["key"]}
        assert manifest["devices"][point["on"]]["spec"] == device
    many = len(manifest["devices"])
    assert load_dataset(tmp_path / "r").device.endswith(f"({many} of them)" if many > 1 else ")")
    assert len(read_records(tmp_path / "r").records) > len(final), "what the lost one did is kept"


def stay_dead(dask_worker: Any) -> None:
    """Tell a nanny not to replace its worker."""
    dask_worker.status = Status.closing_gracefully
