from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tfenv.errors import NotReadyError, UsageError
from tfenv.lock import Resolvers, make_lock, with_todays_debian, write_lock
from tfenv.lockfile import read_lock
from tfenv.model import Base, Cell, CudaSet, DebianPackage, Lock, Row, Rule, Wheel

NOW = datetime(2025, 11, 30, 12, 0, tzinfo=timezone(timedelta(hours=1)))
NCCL = Rule(what="nvidia-nccl-cu12", why="never loaded")

BASE = Base(
    name="debian12",
    kind="debian",
    suite="bookworm",
    pythons=("3.11",),
    cuda_from="wheels",
    packages=("python3.11",),
    epoch=1686355200,
)
CUDA = CudaSet(cuda="12.2", cudnn="8.9", epoch=1710892800, without=(NCCL,))
ROW = Row(
    tensorflow="2.15.1",
    cuda_set=CUDA,
    pythons=("3.11",),
    bases=("debian12",),
    default_base="debian12",
    default_python="3.11",
    exclude_newer="2024-03-20T00:00:00Z",
    requirements=("tensorflow[and-cuda]==2.15.1", "pip"),
)
CELL = Cell(row=ROW, python="3.11", base=BASE)


def deb(name: str, version: str) -> DebianPackage:
    return DebianPackage(
        name=name,
        version=version,
        architecture="amd64",
        archive="debian",
        path=f"pool/main/x/{name}_{version}_amd64.deb",
        size=1,
        sha256="d" * 64,
        essential=False,
    )


def wheel(name: str, version: str, layer: Any = "python") -> Wheel:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(name=name, version=version, filename=filename, size=1, sha256="e" * 64, layer=layer)


class World:
    """Resolvers whose answer changes with ``day``; remembers what they were asked."""

    def __init__(self, day: int = 1) -> None:
        self.day = day
        self.asked: list[tuple[Any, ...]] = []

    def debian(self, suite: str, packages: tuple[str, ...]) -> tuple[DebianPackage, ...]:
        self.asked.append((suite, packages))
        return (deb("python3.11", f"3.11.{self.day}"), deb("libc6", f"2.36-{self.day}"))

    def wheels(self, cell: Cell, platform: str) -> tuple[Wheel, ...]:
        self.asked.append((cell.name, platform))
        return (
            wheel("tensorflow", "2.15.1"),
            wheel("pip", f"24.{self.day}"),
            wheel("uv", f"0.9.{self.day}", "tool"),
            wheel("nvidia-cublas-cu12", "12.2", "cuda"),
        )

    @property
    def resolvers(self) -> Resolvers:
        return Resolvers(debian=self.debian, wheels=self.wheels, uv=lambda: f"0.9.{self.day}")


def make(cell: Cell, previous: Lock | None, world: World, *upgrade: Any, template: str = "1" * 64) -> Lock:
    return make_lock(
        cell,
        previous,
        set(upgrade),
        template_version=template,
        resolvers=world.resolvers,
        now=lambda: NOW,
    )


LOCKED = make(CELL, None, World())


def test_a_first_lock_resolves_everything() -> None:
    world = World()
    lock = make(CELL, None, world)
    assert world.asked == [
        ("bookworm", ("python3.11",)),
        # The wheels' platform comes from the base's own libc6.
        (CELL.name, "x86_64-manylinux_2_36"),
    ]
    assert [p.name for p in lock.debian] == ["libc6", "python3.11"]
    assert [w.name for w in lock.wheels] == ["nvidia-cublas-cu12", "pip", "tensorflow", "uv"]
    assert lock.debian_locked_at == "2025-11-30T11:00:00Z"
    assert (lock.epoch, lock.base_epoch, lock.exclude_newer, lock.uv, lock.suite) == (
        1710892800,
        1686355200,
        "2024-03-20T00:00:00Z",
        "0.9.1",
        "bookworm",
    )


def test_locking_again_resolves_nothing() -> None:
    world = World(day=2)
    assert make(CELL, LOCKED, world) == LOCKED
    assert world.asked == []


def test_what_needs_no_resolving_follows_the_matrix() -> None:
    trim = (Rule(what="nvidia/*/include/**", why="headers"),)
    cublas = Rule(what="nvidia-cublas-cu12", why="test")
    cuda = replace(CUDA, epoch=5, without=(NCCL, cublas))
    cell = replace(CELL, row=replace(ROW, trim=trim, keep=trim, cuda_set=cuda), base=replace(BASE, epoch=6))
    lock = make(cell, LOCKED, World(day=2), template="2" * 64)
    assert lock == replace(
        LOCKED,
        trim=trim,
        keep=trim,
        epoch=5,
        base_epoch=6,
        template="2" * 64,
        without=(NCCL, cublas),
        wheels=LOCKED.wheels[1:],
    )


def test_each_half_is_upgraded_alone() -> None:
    wheels = make(CELL, LOCKED, World(day=2), "wheels")
    assert (wheels.uv, wheels.debian) == ("0.9.2", LOCKED.debian)
    assert wheels.wheels != LOCKED.wheels
    debian = make(CELL, LOCKED, World(day=2), "debian")
    assert (debian.uv, debian.wheels) == ("0.9.1", LOCKED.wheels)
    assert debian.debian != LOCKED.debian


@pytest.mark.parametrize(
    ("cell", "says", "which"),
    [
        (replace(CELL, base=replace(BASE, suite="trixie")), "is trixie now, locked is bookworm", "debian"),
        (replace(CELL, base=replace(BASE, packages=("zlib1g",))), "wants zlib1g", "debian"),
        (replace(CELL, row=replace(ROW, requirements=("tensorflow==2.16.1",))), "locked is 2.15.1", "wheels"),
        (replace(CELL, row=replace(ROW, requirements=("keras_core",))), "locked is nothing", "wheels"),
        (
            replace(CELL, row=replace(ROW, cuda_set=replace(CUDA, without=()))),
            "nvidia-nccl-cu12 is no longer left out",
            "wheels",
        ),
    ],
)
def test_a_matrix_that_asks_for_more_is_told_what_to_type(cell: Cell, says: str, which: Any) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        make(cell, LOCKED, World())
    assert caught.value.remedy == f"tfenv lock {cell.name} --upgrade {which}"
    make(cell, LOCKED, World(), "wheels", "debian")


def test_up_goes_on_with_todays_packages() -> None:
    world = World(day=3)
    lock = with_todays_debian(LOCKED, world.resolvers, ("python3.11",))
    assert world.asked == [("bookworm", ("python3.11",))]
    assert [p.version for p in lock.debian] == ["2.36-3", "3.11.3"]
    assert replace(lock, debian=LOCKED.debian, debian_locked_at=LOCKED.debian_locked_at) == LOCKED


def test_both_files_are_written(tmp_path: Path) -> None:
    path = write_lock(LOCKED, tmp_path)
    assert read_lock(path) == LOCKED
    assert "tensorflow==2.15.1" in (path.parent / "requirements.lock").read_text()
    assert {f.name for f in path.parent.iterdir()} == {"lock.json", "requirements.lock"}


def test_a_failed_write_leaves_the_old_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_lock(LOCKED, tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotReadyError, match="No space left"):
        write_lock(replace(LOCKED, epoch=1), tmp_path)
    assert read_lock(path) == LOCKED
    assert {f.name for f in path.parent.iterdir()} == {"lock.json", "requirements.lock"}
