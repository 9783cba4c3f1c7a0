"""Measure `tfenv build` against a plain Dockerfile, and the commands themselves, in one run on this machine.

Builds are measured cold: an empty store, no build cache, and the image not in the engine. Both sides download
all from the same index, and both end with an image that `docker run` can start, which is checked. tfenv also
builds its base; the plain Dockerfile gets that for nothing. With more rounds the two take turns in going
first, for what the network keeps from one may speed up the other.

The image of the cell is taken out of the engine and put back by the builds. What stays: that image, the
report (--out), and the engine's build cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plain
from figures import Figure, middle, ratio, table
from sizes import Size, size_of
from tfenv.build import ready_engine
from tfenv.engine import Engine
from tfenv.index import discover
from tfenv.store import default_store

ROOT = Path(__file__).resolve().parent.parent
TFENV = str(Path(sys.executable).parent / "tfenv")
NEEDED_BYTES = 35 * 10**9
# The targets.
TIME, SIZE, NO_OP, HELP, RENDER = 0.6, 0.7, 1.0, 0.150, 0.100


@dataclass
class Session:
    """What all measurements of one run share: a folder, an environment with an empty store, the engine."""

    cell: str
    work: Path
    engine: Engine
    images: list[str] = field(default_factory=list)

    @property
    def docker(self) -> str:
        return self.engine.client or "docker"

    @property
    def store(self) -> Path:
        return self.work / "store"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "TFENV_CACHE": str(self.store)}

    def tag(self, name: str) -> str:
        """A tag of our own, removed at the end."""
        tag = f"tfenv-bench-{name}:{os.getpid()}"
        self.images.append(tag)
        return tag


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def timed(argv: Sequence[str], env: Mapping[str, str], cwd: Path = ROOT) -> tuple[float, str]:
    """Wall seconds of a command that must succeed, and its stdout."""
    begun = time.perf_counter()
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {shlex.join(argv)}")
    return seconds, done.stdout


def in_turn(times: int, *actions: Callable[[], float]) -> list[list[float]]:
    """Each action once unmeasured, then all in turn: what slows the machine down slows all of them."""
    for action in actions:
        action()
    rounds = [[action() for action in actions] for _ in range(times)]
    return [list(samples) for samples in zip(*rounds, strict=True)]


def check_runs(session: Session, image: str, python: str, version: str) -> None:
    """Both sides must have made what was asked for."""
    code = "import tensorflow as tf; print(tf.__version__)"
    argv = [session.docker, "run", "--rm", "--network=none", image, python, "-c", code]
    if timed(argv, os.environ)[1].strip() != version:
        raise SystemExit(f"{image} does not have TensorFlow {version}")


def saved_size(session: Session, image: str) -> Size:
    with subprocess.Popen([session.docker, "save", image], stdout=subprocess.PIPE) as process:
        assert process.stdout
        return size_of(process.stdout)


def commands(session: Session, times: int) -> list[Figure]:
    """`tfenv --help` and `tfenv render`, with Python's own start beside them."""
    copy = session.work / "project"  # so that nothing is rewritten in this checkout
    copy.mkdir()
    shutil.copy(ROOT / "matrix.yaml", copy)
    shutil.copytree(ROOT / "images", copy / "images")
    python, started, rendered = in_turn(
        times,
        lambda: timed([sys.executable, "-c", "pass"], session.env, copy)[0],
        lambda: timed([TFENV, "--help"], session.env, copy)[0],
        lambda: timed([TFENV, "render"], session.env, copy)[0],
    )
    start = middle("python starts", python, command="python -c pass")
    usage = middle("`tfenv --help`", started, command="tfenv --help", target=HELP)
    render = middle("`tfenv render`, all cells", rendered, command="tfenv render")
    beyond = Figure(
        name="`tfenv render` beyond start-up",
        value=render.value - usage.value,
        unit="s",
        target=RENDER,
        command="tfenv render - tfenv --help",
    )
    return [start, usage, render, beyond]


def build_ours(session: Session) -> tuple[float, dict[str, Any]]:
    shutil.rmtree(session.store, ignore_errors=True)
    # An image that the engine has is not loaded again, and that would not be a cold build.
    for tag in known(session.cell)["tags"]:
        subprocess.run([session.docker, "image", "rm", "--force", tag], capture_output=True)
        if not subprocess.run([session.docker, "image", "inspect", tag], capture_output=True).returncode:
            raise SystemExit(f"cannot take {tag} out of the engine, so the build would not be cold")
    say("tfenv build, from an empty store and without build cache")
    seconds, out = timed([TFENV, "build", session.cell, "--no-cache", "--json"], session.env)
    built: dict[str, Any] = json.loads(out)
    if built["reused"]:
        raise SystemExit("nothing was built: the store was not empty")
    return seconds, built


def builds(session: Session, rounds: int) -> list[Figure]:
    """Both builds, cold and in turn, and the build that has nothing to do."""
    stage = session.work / "stage"
    own = os.environ  # the user's own store may have all of it already; this is not measured
    say("preparing: the base of the plain Dockerfile")
    timed([TFENV, "build", session.cell, "--stage", str(stage)], own)
    cell = known(session.cell)
    version, python = cell["tensorflow"], cell["python"]
    lock = json.loads((ROOT / f"images/{cell['cell']}/lock.json").read_text())
    base = session.tag("base")
    plain.build_base(session.docker, stage, lock["epoch"], base)
    (wheel,) = (stage / "wheels/python").glob("pip-*.whl")
    secrets = plain.prepare(session.work / "plain", wheel, discover(os.environ))
    arguments = {"BASE": base, "PYTHON": python, "REQUIREMENT": f"tensorflow[and-cuda]=={version}"}
    shutil.rmtree(stage)

    ours: list[tuple[float, dict[str, Any]]] = []
    theirs: list[plain.PlainBuild] = []
    peer = session.tag("plain")

    def build_theirs() -> None:
        say("plain Dockerfile, without build cache")
        log = session.work / "plain.log"
        theirs.append(plain.build(session.docker, session.work / "plain", secrets, arguments, peer, log))

    for number in range(rounds):
        turns: list[Callable[[], None]] = [lambda: ours.append(build_ours(session)), build_theirs]
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn()

    built = ours[-1][1]
    check_runs(session, peer, f"python{python}", version)
    check_runs(session, cell["tags"][0], "python", version)
    with Path(built["archive"]).open("rb") as archive:
        size = size_of(archive)
    if size.compressed_bytes != built["compressed_bytes"]:
        raise SystemExit(
            f"tfenv says {built['compressed_bytes']} bytes, its manifest {size.compressed_bytes}"
        )
    plain_size = saved_size(session, peer)
    (nothing,) = in_turn(5, lambda: no_op(session))
    return figures_of(ours, theirs, size, plain_size, nothing)


def figures_of(
    ours: Sequence[tuple[float, Mapping[str, Any]]],
    theirs: Sequence[plain.PlainBuild],
    size: Size,
    plain_size: Size,
    nothing: Sequence[float],
) -> list[Figure]:
    cell = ours[-1][1]["cell"]
    build = f"tfenv build {cell} --no-cache"
    time_ours = middle("`tfenv build`, cold", [seconds for seconds, _ in ours], command=build)
    time_theirs = middle(
        "plain Dockerfile, cold", [one.seconds for one in theirs], command=redacted(theirs[-1].command)
    )
    fetch_ours = middle(
        "of which downloads, tfenv",
        [built["seconds"]["fetch"] for _, built in ours],
        command="its seconds.fetch",
    )
    fetch_theirs = middle(
        "of which downloads, plain",
        [one.download_seconds for one in theirs],
        command=f"until pip prints '{plain.INSTALLING}'",
    )
    rest_ours = middle(
        "beyond downloads, tfenv",
        [seconds - built["seconds"]["fetch"] for seconds, built in ours],
        command="difference of the above",
    )
    rest_theirs = middle(
        "beyond downloads, plain",
        [one.seconds - one.download_seconds for one in theirs],
        command="difference of the above",
    )
    bytes_ours = Figure(
        name="compressed size, tfenv",
        value=size.compressed_bytes,
        unit="bytes",
        command=f"the archive's manifest: {size.layers} layers, {', '.join(size.media_types)}",
    )
    bytes_theirs = Figure(
        name="compressed size, plain",
        value=plain_size.compressed_bytes,
        unit="bytes",
        command=f"docker save, its manifest: {plain_size.layers} layers, {', '.join(plain_size.media_types)}",
    )
    return [
        ratio("**time, tfenv / plain**", time_ours, time_theirs, TIME),
        time_ours,
        time_theirs,
        fetch_ours,
        fetch_theirs,
        ratio("time beyond downloads, tfenv / plain", rest_ours, rest_theirs),
        rest_ours,
        rest_theirs,
        ratio("**compressed size, tfenv / plain**", bytes_ours, bytes_theirs, SIZE),
        bytes_ours,
        bytes_theirs,
        middle("**`tfenv build`, nothing to do**", nothing, command=f"tfenv build {cell}", target=NO_OP),
    ]


def no_op(session: Session) -> float:
    seconds, out = timed([TFENV, "build", session.cell, "--json"], session.env)
    if not json.loads(out)["reused"]:
        raise SystemExit("the second build was not a no-op")
    return seconds


def known(cell: str) -> dict[str, Any]:
    """What `tfenv list` says of a cell: its full name, tags, versions."""
    cells: list[dict[str, Any]] = json.loads(timed([TFENV, "list", "--json"], os.environ)[1])
    for found in cells:
        if cell in (found["cell"], *found["aliases"]):
            return found
    raise SystemExit(f"tfenv list does not know {cell}")


def redacted(command: str) -> str:
    """Without the folders of this run."""
    return re.sub(r"\S*/([\w.-]+)", r"\1", command)


def machine(engine: Engine) -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "engine": engine.server_version,
        "buildx": engine.buildx,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cell", nargs="?", default="2.15-cu12")
    parser.add_argument("--rounds", type=int, default=1, help="cold builds of each side (default: 1)")
    parser.add_argument("--times", type=int, default=10, help="runs of each short command (default: 10)")
    parser.add_argument("--commands-only", action="store_true", help="build nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench", help="folder of the report")
    given = parser.parse_args()

    engine = ready_engine(os.environ)
    root = default_store().root
    root.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root.parent).free
    if not given.commands_only and free < NEEDED_BYTES:
        say(f"{free / 1e9:.0f} GB free in {root.parent}, {NEEDED_BYTES / 1e9:.0f} GB needed")
        return 4
    # Beside the user's store: staged inputs are hard links out of it.
    work = Path(tempfile.mkdtemp(prefix="tfenv-bench-", dir=root.parent))
    session = Session(given.cell, work, engine)
    try:
        figures = commands(session, given.times)
        if not given.commands_only:
            figures = builds(session, given.rounds) + figures
    finally:
        for image in session.images:
            subprocess.run([session.docker, "image", "rm", "--force", image], capture_output=True)
        shutil.rmtree(work, ignore_errors=True)
    report = {
        "command": shlex.join(["bench/run.py", *sys.argv[1:]]),
        "machine": machine(engine),
        "figures": [figure.as_json() for figure in figures],
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "bench.json").write_text(json.dumps(report, indent=2) + "\n")
    text = table(figures)
    (given.out / "bench.md").write_text(text)
    print(text, end="")
    missed = [figure.name for figure in figures if figure.met is False]
    say(f"missed: {', '.join(missed)}" if missed else "every target is met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
