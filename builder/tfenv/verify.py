"""Run the verification suite in an image and judge what it says. Fails closed.

The suite (verifier/) is mounted into the container, not baked into the image: any image can be
verified, and a new check changes no digest. Here is only the host's side of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from tfenv.buildx import terminable
from tfenv.container import Bind, Ended, Output, ProgramMissingError, Spec
from tfenv.engine import Engine, Run
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.facts import Compiled, Library
from tfenv.model import Cell, Lock
from tfenv.report import Check, Finding, Host, Report, Status, Verdict
from tfenv.resources import verifier_dir

Suite = Literal["smoke", "full"]
FOLDER = "/tfenv"
NO_GPU = "no GPU"  # the verifier's reason for what needs one
# Where a cell's CUDA libraries may come from, by its CUDA source: nothing else may be loaded.
CUDA_FOLDERS: dict[str, tuple[str, ...]] = {
    "wheels": ("/opt/tfenv/cuda",),
    "base": ("/usr/local", "/usr/lib"),
}
_GRACE = 30  # seconds that the limit inside the container has to act before the host kills it
_STDERR_KEPT = 64 * 1024  # bytes
_LINE_MAX = 16 * 1024 * 1024  # bytes; a longer line of stdout is no event

# How to start the suite: with a time limit inside the container where the image has `timeout`.
# 127 is what `timeout` says when the image has no such Python.
_LIMIT = ("timeout", "-k", "10")
_PYTHONS = ("python", "python3")


class Container(Protocol):
    """A started container, as ``container.Running``."""

    def output(self) -> Iterator[Output]:
        """Its output in pieces, to its end."""
        ...

    def wait(self) -> Ended:
        """How it ended."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...


Start = Callable[[Spec], AbstractContextManager[Container]]


def pack(folder: Path | None = None) -> bytes:
    """The suite as a zipapp: the same sources give the same bytes on every host."""
    root = folder if folder is not None else verifier_dir()
    if not (root / "__main__.py").is_file():
        raise IntegrityError(f"{root} holds no verification suite", remedy="install tfenv again")
    out = io.BytesIO()
    # Stored, not compressed: zlib's output differs between its versions.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix()):
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, path.read_bytes())
    return out.getvalue()


@dataclass(frozen=True)
class Plan:
    """What a suite has to run for a pass, as the host's own copy of it says.

    Args:
        accepted: by check, the reasons for which it may be not run and the image pass all the same.
        limit: seconds for the whole suite: what its checks may take together.
    """

    names: tuple[str, ...]
    accepted: Mapping[str, tuple[str, ...]]
    limit: int


def plan_of(packed: bytes, suite: Suite) -> Plan:
    """Ask the suite itself, here and not in the image, what it consists of.

    Raises:
        IntegrityError: it does not answer: tfenv's own files are damaged.
    """
    with _mounted(packed, {}) as folder:
        command = [sys.executable, "-I", "-B", str(folder / "verify.pyz"), "--list", "--suite", suite]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    try:
        *listed, last = [json.loads(line) for line in done.stdout.splitlines()]
        plan = Plan(
            names=tuple(str(check["name"]) for check in listed),
            accepted={str(check["name"]): tuple(check["accepted"]) for check in listed},
            limit=int(last["limit"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise IntegrityError(
            f"the verification suite does not list its checks: {done.stderr.strip()[-500:] or error}",
            remedy="install tfenv again",
        ) from error
    if not plan.names:
        raise IntegrityError(f"the suite {suite} has no checks", remedy="install tfenv again")
    return plan


def suite_hash(packed: bytes, suite: str, declared: Mapping[str, Any]) -> str:
    """Hex sha256 of all that a verdict depends on beside image and host: code, suite, declaration.

    The image's name is no part of it: a verdict belongs to a digest.
    """
    told = {name: value for name, value in declared.items() if name != "image"}
    text = json.dumps([hashlib.sha256(packed).hexdigest(), suite, told], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def declared_for(
    cell: Cell,
    lock: Lock,
    compiled: Compiled,
    libraries: Iterable[Library],
    *,
    image: str = "",
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the image is said to be, for ``declared.json``.

    Raises:
        IntegrityError: the lock lacks the wheel of a library that TensorFlow opens.
    """
    versions = {wheel.name: wheel.version for wheel in lock.wheels}
    left_out = {rule.what for rule in lock.without}
    wanted = [library for library in libraries if library.wheel not in left_out]
    missing = sorted({library.wheel for library in wanted} - versions.keys())
    if lock.cuda_from == "wheels" and missing:
        raise IntegrityError(
            f"the lock of {cell.name} lacks {', '.join(missing)}, which TensorFlow opens",
            remedy=f"run `tfenv lock {cell.name}`, or name the wheel under `without` with the reason",
        )
    return {
        "format": 1,
        "cell": cell.name,
        "image": image,
        "tensorflow": cell.row.tensorflow,
        "python": cell.python,
        "cuda": cell.row.cuda_set.cuda,
        "cudnn": cell.row.cuda_set.cudnn,
        "compiled": {
            "cuda": compiled.cuda,
            "cudnn": compiled.cudnn,
            "nccl": {"version": compiled.nccl, "how": compiled.nccl_how},
        },
        "libraries": [
            {
                "name": library.name,
                "soname": library.soname,
                "version": versions.get(library.wheel, ""),
                "wheel": library.wheel,
                "why": library.why,
            }
            for library in wanted
        ],
        "env": dict(environment or {}),
        "cuda_from": lock.cuda_from,
        "cuda_folders": list(CUDA_FOLDERS[lock.cuda_from]),
        "record": {"exact": True},
        "keep": [{"what": rule.what, "why": rule.why} for rule in lock.keep],
    }


def host_facts(
    run: Run,
    engine: Engine,
    *,
    gpus: bool,
    cpuinfo: Callable[[], str] = lambda: _read("/proc/cpuinfo"),
    machine: Callable[[], str] = platform.machine,
) -> Host:
    """What matters of this machine. GPUs count only where the container gets them."""
    models = [line.split(":", 1)[1].strip() for line in cpuinfo().splitlines() if "model name" in line]
    host = Host(
        kernel=engine.kernel,
        machine=machine(),
        cpu=models[0] if models else "",
        docker=engine.server_version or "",
    )
    if not gpus:
        return host
    done = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if "," in line]
    if done.returncode != 0 or not rows:
        return host
    names = tuple(name.strip() for name, _ in rows)
    return replace(host, gpus=names, driver=rows[0][1].strip())


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


@dataclass
class Outcome:
    """What the suite said, as it came."""

    checks: list[Check] = field(default_factory=list)
    started: bool = False
    planned: tuple[str, ...] = ()
    verdict: str | None = None
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Not one event came: the suite did not even start."""
        return not (self.started or self.checks or self.verdict)


def take(outcome: Outcome, line: str) -> Check | None:
    """Add one line of the suite's stdout; the check in it, if it is one.

    A line that is no event is kept as a stray: other programs may print on stdout too.
    """
    try:
        event = json.loads(line)
        kind = event["event"]
        if kind == "start":
            outcome.started = True
            outcome.planned = tuple(str(check["name"]) for check in event.get("checks") or ())
        elif kind == "check":
            outcome.checks.append(_check(event))
            return outcome.checks[-1]
        elif kind == "end":
            outcome.verdict = str(event["verdict"])
            outcome.reason = str(event.get("reason") or "")
            outcome.facts = dict(event.get("facts") or {})
    except (ValueError, TypeError, KeyError, AttributeError):
        if line.strip():
            outcome.strays.append(line[:500])
    return None


def _check(event: Mapping[str, Any]) -> Check:
    status = event["status"]
    findings = tuple(
        Finding(
            severity=item.get("severity", "error"),
            message=str(item.get("message", "")),
            evidence=str(item.get("evidence") or ""),
            remedy=str(item.get("remedy") or ""),
        )
        for item in event.get("findings") or ()
    )
    if status not in ("pass", "fail", "not-run"):
        unknown = Finding(severity="error", message=f"the suite gave an unknown status {status!r}")
        status, findings = "fail", (*findings, unknown)
    return Check(
        name=str(event["name"]),
        status=cast(Status, status),
        seconds=float(event.get("seconds") or 0.0),
        findings=findings,
        facts=dict(event.get("facts") or {}),
        reason=str(event.get("reason") or ""),
    )


def judge(outcome: Outcome, ended: Ended, stderr: str, limit: int, plan: Plan) -> tuple[Verdict, Outcome]:
    """The verdict, and the outcome with a failed check added where the suite broke off.

    A pass needs all of: the suite's own word for it, exit status 0, exactly the checks of ``plan``,
    a result of each, one that passed, none that failed, and of those not run only what the plan accepts.
    """
    states = [check.status for check in outcome.checks]
    if outcome.verdict not in ("pass", "fail", "unverified"):
        return "fail", _broke_off(outcome, _why_ended(ended, limit), stderr)
    if outcome.verdict == "fail" or "fail" in states:
        if "fail" not in states:
            return "fail", _broke_off(outcome, "the suite failed without a failed check", stderr)
        return "fail", outcome
    if lost := set(outcome.planned) - {check.name for check in outcome.checks}:
        return "fail", _broke_off(outcome, f"no result came of {', '.join(sorted(lost))}", stderr)
    expected = {"pass": 0, "unverified": 3}[outcome.verdict]
    if ended.status != expected:
        why = f"the suite said {outcome.verdict} but ended with exit status {ended.status}"
        return "fail", _broke_off(outcome, why, stderr)
    if doubts := [*_not_run(outcome, plan), *_not_planned(outcome, plan)]:
        outcome.reason = outcome.reason or "; ".join(doubts)
        return "unverified", outcome
    if "pass" not in states:
        outcome.reason = outcome.reason or "no check was run"
        return "unverified", outcome
    if outcome.verdict == "unverified":
        outcome.reason = outcome.reason or "the suite does not say why"
    return cast(Verdict, outcome.verdict), outcome


def _not_run(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """Why what was not run leaves the image unverified; no GPU is said once for all checks."""
    left = [
        check
        for check in outcome.checks
        if check.status == "not-run" and check.reason not in plan.accepted.get(check.name, ())
    ]
    if any(check.reason == NO_GPU for check in left):
        yield NO_GPU
    for check in left:
        if check.reason != NO_GPU:
            yield f"{check.name} was not run: {check.reason or 'no reason is given'}"


def _not_planned(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """What the suite in the container left out of its plan, or out of its results."""
    ran = {check.name for check in outcome.checks}
    if left := [name for name in plan.names if name not in outcome.planned or name not in ran]:
        yield f"the suite did not plan {', '.join(left)}"
    if strange := sorted((ran | set(outcome.planned)) - set(plan.names)):
        yield f"the suite has unknown checks: {', '.join(strange)}"


def _why_ended(ended: Ended, limit: int) -> str:
    if ended.out_of_memory:
        return "the kernel ended the suite: out of memory"
    if ended.status in (124, 137):
        return f"the suite did not end within {limit} s, or was killed (exit status {ended.status})"
    return f"the suite ended without a verdict (exit status {ended.status})"


def _broke_off(outcome: Outcome, why: str, stderr: str) -> Outcome:
    evidence = "\n".join([*outcome.strays[-10:], *stderr.splitlines()[-20:]])
    finding = Finding(
        severity="error",
        message=why,
        evidence=evidence,
        remedy="run the image by hand: `docker run --rm -it IMAGE python -c 'import tensorflow'`",
    )
    broken = Check(name="suite", status="fail", findings=(finding,))
    return replace(outcome, checks=[*outcome.checks, broken])


def commands(limit: int, suite: str) -> list[tuple[str, ...]]:
    """The ways to start the suite, best first; ``limit`` in seconds."""
    arguments = (f"{FOLDER}/verify.pyz", "--declared", f"{FOLDER}/declared.json", "--suite", suite)
    bare = [(python, "-B", *arguments) for python in _PYTHONS]
    return [*((*_LIMIT, str(limit), *command) for command in bare), *bare]


@contextmanager
def _mounted(packed: bytes, declared: Mapping[str, Any]) -> Iterator[Path]:
    """A folder with the suite and the declaration, readable for whatever user the image has."""
    with tempfile.TemporaryDirectory(prefix="tfenv-verify-") as name:
        folder = Path(name)
        (folder / "verify.pyz").write_bytes(packed)
        (folder / "declared.json").write_text(json.dumps(declared, indent=2, sort_keys=True))
        for path in folder.iterdir():
            path.chmod(0o644)
        folder.chmod(0o755)
        yield folder


def verify_image(
    ref: str,
    declared: Mapping[str, Any],
    *,
    digest: str | None,
    host: Host,
    start: Start,
    suite: Suite = "smoke",
    gpus: bool = False,
    timeout: int | None = None,
    endpoint: str = "",
    packed: bytes | None = None,
    plan_of: Callable[[bytes, Suite], Plan] = plan_of,
    on_check: Callable[[Check], None] = lambda _check: None,
    clock: Callable[[], float] = time.time,
) -> Report:
    """Verify the image ``ref``, whose manifest has ``digest`` (None: it is not here).

    Args:
        start: runs a container: ``Containers.container``.
        gpus: give it all GPUs. timeout: seconds for the whole suite, else what its plan says.
        endpoint: the engine's; the suite is mounted from this machine, so it must be local.
        on_check: gets each check as it ends.

    Raises:
        UsageError: no such image. NotReadyError: the engine cannot run it here.
    """
    if digest is None:
        raise UsageError(f"there is no image {ref} here", remedy=f"run `tfenv build {ref}`")
    if endpoint.startswith(("tcp://", "ssh://", "http://", "https://")):
        raise NotReadyError(
            f"the engine at {endpoint} does not see this machine's files",
            remedy="run `tfenv verify` on the machine of the engine",
        )
    code = pack() if packed is None else packed
    plan = plan_of(code, suite)
    limit = plan.limit if timeout is None else timeout
    began = clock()
    with terminable(), _mounted(code, declared) as folder:
        spec = Spec(image=ref, gpus=gpus, binds=(Bind(folder, FOLDER),))
        outcome, ended, stderr = _first(start, spec, commands(limit, suite), limit, on_check)
    verdict, outcome = judge(outcome, ended, stderr, limit, plan)
    return Report(
        image=ref,
        digest=digest,
        suite=suite,
        suite_hash=suite_hash(code, suite, declared),
        verdict=verdict,
        host=host,
        checks=tuple(outcome.checks),
        started=round(began * 1000),
        seconds=round(clock() - began, 3),
        reason=outcome.reason if verdict == "unverified" else "",
        facts=outcome.facts,
    )


def _first(
    start: Start,
    spec: Spec,
    ways: Sequence[tuple[str, ...]],
    limit: int,
    on_check: Callable[[Check], None],
) -> tuple[Outcome, Ended, str]:
    """The outcome of the first way that starts; the image may lack `timeout` or `python`."""
    last = (Outcome(), Ended(127), "")
    for way in ways:
        entry = replace(spec, entrypoint=way[:1], command=way[1:])
        try:
            outcome, ended, stderr = _attempt(start, entry, limit, on_check)
        except ProgramMissingError as error:
            last = (Outcome(), Ended(127), error.message)
            continue
        if ended.status == 127 and outcome.silent:
            last = (outcome, ended, stderr)
            continue
        return outcome, ended, stderr
    return last


def _attempt(
    start: Start, spec: Spec, limit: int, on_check: Callable[[Check], None]
) -> tuple[Outcome, Ended, str]:
    outcome, pending, stderr = Outcome(), b"", b""
    with start(spec) as running:
        # `timeout` in the container may be missing, or the container may be stuck in the kernel.
        watch = threading.Timer(limit + _GRACE, running.kill)
        watch.daemon = True
        watch.start()
        try:
            for out, err in running.output():
                stderr = (stderr + err)[-_STDERR_KEPT:]
                *lines, pending = (pending + out).split(b"\n")
                pending = pending[-_LINE_MAX:]
                for line in lines:
                    if check := take(outcome, line.decode("utf-8", "replace")):
                        on_check(check)
            if pending:
                take(outcome, pending.decode("utf-8", "replace"))
            ended = running.wait()
        finally:
            watch.cancel()
    return outcome, ended, stderr.decode("utf-8", "replace")
