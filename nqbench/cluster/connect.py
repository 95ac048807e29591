"""Ways to a cluster: this computer's GPUs, a scheduler that runs, or a file for SSH or Slurm.

Dask starts and connects everything; nqbench adds what each worker announces and the rule that
nobody listens beyond this computer without encryption.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import platform
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import yaml

from nqbench.cluster.host import CORES, DEVICES, OWN_CORES, Offer, offers
from nqbench.cluster.members import WAIT_S, Cluster
from nqbench.errors import DeviceUnavailable, StudyError
from nqbench.measure.worker.pool import import_path
from nqbench.system.files import contents_of
from nqbench.system.machine import cpu_count

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

LOOPBACK: Final = "127.0.0.1"
CONNECT_S: Final = 10.0
QUEUE_S: Final = 3600.0
"""Longest wait for the first worker of a batch system, which may keep its jobs waiting."""
UNREACHABLE: Final = (OSError, TypeError, ValueError, RuntimeError)
"""What Dask raises where no scheduler answers, or not as one."""
KINDS: Final = ("ssh", "slurm")
TLS: Final = "tls"
SILENT: Final = {"DASK_LOGGING__DISTRIBUTED": "critical"}
PAGES: Final = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
"""What Dask's web servers show even without a dashboard, to whoever asks."""
NO_DASHBOARD: Final = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Dask's web server listens on all networks unless told otherwise."""


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """How the command line names a cluster: one of the three. Raises ``StudyError`` for two.

    ``gpus``       ``all`` or numbers, ``0,1``
    ``scheduler``  ``tcp://HOST:PORT`` or ``tls://HOST:PORT``
    ``file``       a YAML file with ``ssh`` or ``slurm``
    """

    gpus: str | None = None
    scheduler: str | None = None
    file: Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        named = {"--gpus": self.gpus, "--scheduler": self.scheduler, "--cluster": self.file}
        found = [option for option, value in named.items() if value is not None]
        if len(found) > 1:
            raise StudyError(f"{' and '.join(found)} name two clusters; give one of them")


@contextmanager
def connected(asked: ClusterTarget, notice: Callable[[str], None]) -> Iterator[Cluster]:
    """A connection to the cluster, which ends with the block; what it started ends too.

    Raises ``StudyError`` for a wrong request and ``DeviceUnavailable`` if there is no cluster.
    """
    # SSHCluster waits for a line in its workers' logs.
    with quiet_dask(workers=asked.file is None), ExitStack() as stack:
        wait_s = CONNECT_S
        target: Any = asked.scheduler
        if asked.scheduler is not None:
            check_address(asked.scheduler, asked.insecure)
        elif asked.file is not None:
            target = stack.enter_context(running(asked.file, asked.insecure))
            wait_s = QUEUE_S
        else:
            assert asked.gpus is not None
            target = stack.enter_context(local(gpu_workers(asked.gpus)))
        client = stack.enter_context(_client(target))
        cluster = Cluster(client, notice)
        _wait_for_workers(cluster, wait_s)
        try:
            yield cluster
        finally:
            cluster.stop()


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """One worker of a machine: its devices, and its share of the cores."""

    offers: tuple[Offer, ...]
    cores: int

    def options(self) -> dict[str, Any]:
        """For Dask's ``Nanny``."""
        specs = ";".join(offer.spec for offer in self.offers)
        variables = {DEVICES: specs, OWN_CORES: str(self.cores), "PYTHONPATH": import_path()}
        return {
            "nthreads": self.cores + len(self.offers) + 1,
            "memory_limit": 0,
            **NO_DASHBOARD,
            "env": variables,
            "silence_logs": logging.CRITICAL,
            "resources": {CORES: self.cores, **{o.resource: 1 for o in self.offers}},
        }


def gpu_workers(gpus: str) -> list[WorkerPart]:
    """One worker per GPU of this computer: ``all``, or those numbered. Raises ``StudyError``."""
    from nqbench.devices.cuda.query import find_gpus

    numbers = gpus.split(",")
    if gpus != "all" and not all(part.strip().isdecimal() for part in numbers):
        raise StudyError(f"--gpus takes `all` or numbers such as 0,1, not {gpus!r}")
    there = [*find_gpus()]
    wanted = there if gpus == "all" else [f"cuda:{int(part)}" for part in numbers]
    for spec in wanted:
        if spec not in there:
            said = f"--gpus {gpus}: there is no {spec}; here are {', '.join(there)}"
            raise DeviceUnavailable(said)
    if len({*wanted}) < len(wanted):
        raise StudyError(f"--gpus {gpus} names a GPU twice")
    known = {offer.spec: offer for offer in offers()}
    share = max(1, cpu_count() // len(wanted))
    cpu = (known["cpu"],) if "cpu" in known else ()
    return [
        WorkerPart((known[spec], *(() if place else cpu)), share)
        for place, spec in enumerate(wanted)
    ]


def local(parts: Sequence[WorkerPart]) -> SpecCluster:
    """A scheduler and these workers, on the loopback address, without a dashboard.

    Others have accounts on this computer, too: certificates that exist in memory alone, made for
    this cluster, keep them out.
    """
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.security import Security

    security = Security.temporary()
    options = {"host": LOOPBACK, "security": security, "protocol": f"{TLS}://"}
    return SpecCluster(
        workers={
            number: {"cls": Nanny, "options": {**options, **part.options()}}
            for number, part in enumerate(parts)
        },
        scheduler={"cls": Scheduler, "options": {**options, "port": 0, **NO_DASHBOARD}},
        security=security,
        silence_logs=logging.CRITICAL,
    )


def check_address(address: str, insecure: bool) -> None:
    """Refuse an address beyond this computer that is not encrypted. Raises ``StudyError``."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        complete = bool(parts.hostname and parts.port)
    except ValueError:
        complete = False
    if not complete or parts.scheme not in ("tcp", TLS):
        raise StudyError(f"{address!r} is no address of a scheduler; write tcp://HOST:PORT")
    if parts.scheme == TLS or insecure or is_loopback(str(parts.hostname)):
        return
    raise StudyError(
        f"{address} is neither on this computer nor encrypted: whoever reaches it can run programs"
        " here; use tls:// (docs/cluster.md says how), or --insecure in a network where you trust"
        " everybody"
    )


def unreachable(scheduler: str, error: BaseException) -> DeviceUnavailable:
    """The error that there is no scheduler, or that certificates are missing or others."""
    docs = " (certificates: docs/cluster.md)" if scheduler.startswith(TLS) else ""
    return DeviceUnavailable(
        f"no scheduler can be reached at {scheduler}: {_one_line(error)}; start one with `dask"
        f" scheduler`{docs}"
    )


def is_loopback(host: str) -> bool:
    """Whether an address reaches this computer only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def quiet_dask(*, workers: bool) -> Iterator[None]:
    """Dask's settings while nqbench uses it: no long wait for a scheduler, no log lines here nor,
    if wanted, from ``workers``, which have the environment of this process.

    Raises ``DeviceUnavailable`` where Dask is not installed.
    """
    try:
        import distributed  # noqa: F401
        from dask import config
    except ImportError as error:
        said = "dask.distributed is not installed; pip install 'nqbench[cluster]'"
        raise DeviceUnavailable(said) from error

    loggers = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    # Of tasks that end with their connection, and of jobs that could not be submitted.
    for name in (*loggers, "asyncio", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Left behind by connections that close; shown when the process ends.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    settings = {
        "distributed.comm.timeouts.connect": f"{CONNECT_S:g}s",
        # In place of OMP_NUM_THREADS=1 and the like, which CPU systems and programs would inherit.
        "distributed.nanny.pre-spawn-environ": SILENT if workers else {},
        "distributed.worker.profile.enabled": False,  # nobody reads it
        **dict.fromkeys(PAGES, ()),
    }
    with config.set(settings):
        yield


@contextmanager
def _client(target: Any) -> Iterator[Client]:
    from distributed import Client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions that differ get a sentence of their own
            client = Client(target, timeout=CONNECT_S, set_as_default=False)
    except UNREACHABLE as error:
        raise unreachable(str(target), error) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_S)


def _wait_for_workers(cluster: Cluster, limit_s: float) -> None:
    """Until there is a worker that can take part. Raises ``DeviceUnavailable``."""
    end = time.monotonic() + limit_s
    if limit_s == QUEUE_S:
        cluster.notice("waiting for the first worker (Ctrl-C ends this)")
    while not cluster.look():
        if time.monotonic() >= end or cluster.refused:
            why = "; ".join(cluster.refused.values()) or f"none came within {limit_s:g} s"
            raise DeviceUnavailable(
                f"the cluster has no worker for this run: {why}; `nqbench worker ADDRESS` starts"
                " one"
            )
        time.sleep(WAIT_S)


def described(path: Path, insecure: bool) -> tuple[str, dict[str, Any]]:
    """What ``--cluster`` names: ``ssh`` or ``slurm``, and the arguments of Dask's class for it.

    Raises ``StudyError``, also for workers that would listen without encryption.
    """
    from dask import config

    try:
        data = yaml.safe_load(contents_of(path).decode())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or _one_line(error)
        raise StudyError(f"--cluster {path} cannot be read: {why}") from error
    single = isinstance(data, dict) and len(data) == 1
    ((kind, given),) = data.items() if single else [("", {})]
    if kind not in KINDS or not isinstance(given, dict):
        raise StudyError(
            f"{path}: give the arguments of one of Dask's clusters, under ssh: or slurm:, and"
            " nothing else (jobs is n_workers under slurm, and its certificates need no tls)"
        )
    encrypted = config.get("distributed.comm.require-encryption", None)
    if kind == "ssh" and not (encrypted or insecure):
        raise StudyError(
            f"{path}: its workers would listen on their network without encryption; name"
            " certificates in Dask's configuration (docs/cluster.md says how), or add --insecure"
            " in a network where you trust everybody"
        )
    return kind, given


@contextmanager
def running(path: Path, insecure: bool) -> Iterator[SpecCluster]:
    """The cluster of a file, started by Dask's own class; it ends with the block.

    Raises ``StudyError`` with what Dask or the batch system says.
    """
    from distributed import SSHCluster, Status

    kind, given = described(path, insecure)
    workers = given.pop("n_workers", 1) if kind == "slurm" else 0
    with _told(path, kind):
        scheduler = {**NO_DASHBOARD, **given.pop("scheduler_options", {})}
        if kind == "ssh":
            worker = {**NO_DASHBOARD, **given.pop("worker_options", {})}
            cluster = SSHCluster(**given, scheduler_options=scheduler, worker_options=worker)
        else:
            cluster = _slurm(given, scheduler)
    try:
        if kind == "slurm":  # not before Dask's scheduler runs, which jobs have the address of
            with _told(path, kind):
                cluster.scale(workers)
                cluster.sync(_submitted, cluster)
        yield cluster
    finally:
        for job in cluster.workers.values():
            job.status = Status.closing  # Dask insists on it, and jobs of Slurm do not say so
        cluster.close()


@contextmanager
def _told(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise DeviceUnavailable(f"{error}; pip install 'nqbench[cluster]'") from error
    except Exception as error:  # of Dask, asyncssh or the batch system
        raise StudyError(f"{path}: {kind}: {_one_line(error)}") from error


def _slurm(given: dict[str, Any], scheduler: dict[str, Any]) -> SpecCluster:
    """With the certificates of Dask's configuration, else with some for this cluster alone."""
    from dask import config
    from distributed.security import Security

    handler = signal.getsignal(signal.SIGINT)
    from dask_jobqueue.slurm import SLURMCluster

    signal.signal(signal.SIGINT, handler)  # the import lets Ctrl-C end in exit code 0
    words = ["--no-dashboard", "--dashboard-address", NO_DASHBOARD["dashboard_address"]]
    words += given.pop("worker_extra_args", ())
    return SLURMCluster(
        **{"shared_temp_directory": str(Path.cwd()), **given},
        scheduler_options=scheduler,
        worker_extra_args=words,
        security=Security() if config.get("distributed.comm.tls.ca-file", None) else True,
    )


async def _submitted(cluster: SpecCluster) -> None:
    await cluster
    for job in cluster.workers.values():
        await job  # Dask forgets why it could not be submitted: it is tried once more


def serve(scheduler: str, gpus: str, insecure: bool, say: Callable[[str], None]) -> None:
    """Run one worker per GPU, or one for the CPU and the simulator, until the scheduler ends or
    Ctrl-C. Raises ``StudyError`` or ``DeviceUnavailable``."""
    check_address(scheduler, insecure)
    plain = tuple(offer for offer in offers() if offer.kind != "cuda")
    no_gpu = gpus == "none" or (gpus == "all" and plain == offers())
    parts = [WorkerPart(plain, cpu_count())] if no_gpu else gpu_workers(gpus)
    with quiet_dask(workers=True), suppress(KeyboardInterrupt):  # the usual end of a worker
        asyncio.run(_serve(scheduler, parts, say))


async def _serve(scheduler: str, parts: Sequence[WorkerPart], say: Callable[[str], None]) -> None:
    from distributed import Nanny

    host = LOOPBACK if is_loopback(str(urlsplit(scheduler).hostname)) else None
    nannies: list[Any] = []
    try:
        for part in parts:
            nanny = Nanny(scheduler, host=host, **part.options())
            nannies.append(nanny)
            try:
                await asyncio.wait_for(nanny, 6 * CONNECT_S)
            except UNREACHABLE as error:
                raise unreachable(scheduler, error) from error
            devices = ", ".join(f"{o.spec} ({o.name}{o.uuid and ' '}{o.uuid})" for o in part.offers)
            say(f"worker on {platform.node()}: {devices}; {part.cores} cores that simulate")
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
        say("ended by the scheduler")
    finally:
        await asyncio.gather(*(nanny.close() for nanny in nannies), return_exceptions=True)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
