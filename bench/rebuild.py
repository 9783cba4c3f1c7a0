"""Measure snapshots: a rebuild against a first build, and the bytes of ten snapshots of one row against one.

usage: .venv/bin/python bench/rebuild.py [--cell CELL] [--small] [--bundle DIR] [--first] [--ways N]

The rebuild runs with a store of its own that is empty, and in an empty network namespace: it has the bundle
and the engine. --first also builds the cell from an empty store, with all downloads, to compare with. --ways
rebuilds N times, each time in another way (see varied.py). --small takes the cell without its large wheels:
every step of the real recipe, in a minute. Nothing is pruned; no build uses a cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import Figure, middle, ratio, table
from tfenv.build import Host, build
from tfenv.console import Console
from tfenv.inputs import Inputs, unlocked
from tfenv.lockfile import read_lock
from tfenv.model import Lock
from tfenv.snapshot.archive import archive
from tfenv.store import Store, default_store
from tfenv.workspace import here
from varied import WAYS, Way, command, possible

TFENV = str(Path(sys.executable).with_name("tfenv"))
SNAPSHOTS = 10
SMALL = 6_000_000  # bytes of a wheel


def run(argv: Sequence[str], env: dict[str, str], place: Path) -> tuple[float, Any]:
    """Seconds, and the JSON that the command printed.

    Raises:
        SystemExit: it failed.
    """
    began = time.monotonic()
    done = subprocess.run(argv, env=env, cwd=place, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{argv} ended with {done.returncode}")
    return time.monotonic() - began, {**json.loads(done.stdout), "exit": done.returncode}


def rebuilt(bundle: Path, way: Way, work: Path) -> tuple[float, Any]:
    """One rebuild, in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="rebuild-", dir=work) as root:
        argv = [TFENV, "rebuild", str(bundle), "--offline", "--json"]
        return run(*command(way, argv, Path(root), network=False))


def first(cell: str, work: Path, project: Path) -> tuple[float, Any]:
    """A first build: empty store, all downloads, no cache."""
    with tempfile.TemporaryDirectory(prefix="first-", dir=work) as root:
        env = {**os.environ, "TFENV_CACHE": root}
        return run([TFENV, "build", cell, "--no-cache", "--json"], env, project)


def small(name: str) -> Inputs:
    """The cell without its large wheels, and so without TensorFlow."""
    workspace = here()
    (cell,) = workspace.cells((name,))
    lock = workspace.lock(cell)
    wheels = tuple(w for w in lock.wheels if w.layer == "tool" or w.size < SMALL)
    return unlocked(cell, replace(lock, wheels=tuple(w for w in wheels if w.name != "tensorflow")))


def archive_small(name: str, folder: Path) -> None:
    """A snapshot of that."""
    host, nowhere = Host(default_store(os.environ), Console(), os.environ), folder / "nowhere"
    archive(small(name), host, folder, cell_folder=nowhere, reports=nowhere)


def first_small(name: str, work: Path) -> tuple[float, Any]:
    """A first build of that: empty store, all downloads, no cache."""
    with tempfile.TemporaryDirectory(prefix="first-", dir=work) as root:
        host = Host(Store(Path(root)), Console(), os.environ)
        began = time.monotonic()
        built = build(small(name), host, no_cache=True, archive_only=True)
        return time.monotonic() - began, {
            "manifest": built.digest.manifest,
            "seconds": dict(built.seconds),
        }


def inputs(lock: Lock) -> dict[str, int]:
    """What a snapshot of that lock holds of packages, by hash; the rest is less than a thousandth of it."""
    return {p.sha256: p.size for p in lock.debian} | {w.sha256: w.size for w in lock.wheels}


def bytes_of(images: Path) -> dict[str, list[Lock]]:
    """The locks of each row that has enough cells for a comparison."""
    rows: dict[str, list[Lock]] = {}
    for path in sorted(images.glob("*/lock.json")):
        rows.setdefault(path.parent.name.partition("-")[0], []).append(read_lock(path))
    return {row: locks for row, locks in rows.items() if len(locks) >= 2}


def shared_bytes(images: Path) -> list[Figure]:
    """For the rows with most cells: all snapshots in one folder, in times of the largest alone."""
    rows = sorted(bytes_of(images).items(), key=lambda item: -len(item[1]))[:3]
    figures = []
    for row, locks in rows:
        taken = locks[:SNAPSHOTS]
        each = [sum(inputs(lock).values()) for lock in taken]
        together = sum({k: v for lock in taken for k, v in inputs(lock).items()}.values())
        gigabytes = f"{together / 1e9:.2f} GB, apart {sum(each) / 1e9:.2f}"
        how = f"packages of {len(taken)} locks of {row} by hash: {gigabytes}"
        figures.append(
            Figure(
                name=f"{len(taken)} snapshots of {row} / the largest",
                value=together / max(each),
                unit="",
                command=how,
            )
        )
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cell", default="2.15-cu12")
    parser.add_argument("--bundle", type=Path, help="an existing folder with one snapshot of the cell")
    parser.add_argument("--small", action="store_true", help="the cell without its large wheels")
    parser.add_argument("--first", action="store_true", help="also measure a first build")
    parser.add_argument("--ways", type=int, default=1, help="how many rebuilds, each in another way")
    parser.add_argument("--start", type=int, default=0, help="which way is the first")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    given = parser.parse_args()
    if why := possible():
        raise SystemExit(why)
    project = here().matrix_path.parent
    figures, bundle = shared_bytes(project / "images"), given.bundle
    made = Path(tempfile.mkdtemp(prefix="bundle-", dir=given.work))
    try:
        if given.small:
            bundle = made / "kept"
            archive_small(given.cell, bundle)
        if bundle is None:
            bundle = made / "kept"
            argv = [TFENV, "archive", given.cell, "--to", str(bundle), "--json"]
            seconds, told = run(argv, dict(os.environ), project)
            figures.append(Figure(name="archive", value=seconds, unit="s", command="tfenv archive"))
            figures.append(
                Figure(name="one snapshot", value=told["bytes"], unit="bytes", command="tfenv archive")
            )
        samples = []
        for way in WAYS[given.start : given.start + given.ways]:
            seconds, told = rebuilt(bundle, way, given.work)
            samples.append(seconds)
            print(f"{way.name}: {told.get('outcome')} {told.get('manifest')} in {seconds:.0f} s", flush=True)
            if told["exit"]:
                print(json.dumps(told, indent=1))
                return 1
        how = "tfenv rebuild --offline, empty store, no network"
        figures.append(middle("rebuild", samples, command=how))
        if given.first:
            if given.small:
                seconds, told = first_small(given.cell, given.work)
            else:
                seconds, told = first(given.cell, given.work, project)
            print(f"first build: {told['manifest']} in {seconds:.0f} s: {told['seconds']}", flush=True)
            figures.append(
                Figure(name="first build", value=seconds, unit="s", command="tfenv build, empty store")
            )
            figures.append(ratio("rebuild / first build", figures[-2], figures[-1]))
    finally:
        shutil.rmtree(made, ignore_errors=True)
    print(table(figures))
    if given.out:
        given.out.write_text(json.dumps([figure.as_json() for figure in figures], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
