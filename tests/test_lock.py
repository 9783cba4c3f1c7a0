from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tfenv import facts
from tfenv.errors import NotReadyError, UsageError
from tfenv.lock import Resolvers, make_lock, with_todays_debian, write_lock
from tfenv.lockfile import read_lock
from tfenv.model import Base, Cell, CudaSet, DebianPackage, Lock, Row, Rule, Wheel

NCCL = Rule(what="nvidia-nccl-cu12", why="never loaded")

BASE = Base(
    name="debian12",
    kind="debian",
    suite="bookworm",
    pythons=(("3.11", ("python3.11",)),),
    provided_pythons=("3.10",),
    packages=("apt",),
    epoch=1686355200,
)
CUBLAS = "nvidia-cublas-cu12==12.2"
CUDA = CudaSet(cuda="12.2", cudnn="8.9", epoch=1690000000, wheels=(CUBLAS,), without=(NCCL,))
ROW = Row(
    tensorflow="2.15.1",
    pythons=("3.11",),
    bases=("debian12",),
    default_base="debian12",
    default_python="3.11",
    exclude_newer="2024-03-20T00:00:00Z",
    requirements=("tensorflow==2.15.1", "pip"),
)
CELL = Cell(row=ROW, python="3.11", base=BASE, cuda_set=CUDA, cuda_from="wheels")
PACKAGES = ("apt", "python3.11")


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

    def debian(self, suite: str, packages: tuple[str, ...]) -> tuple[tuple[DebianPackage, ...], str]:
        self.asked.append((suite, packages))
        found = (deb("python3.11", f"3.11.{self.day}"), deb("libc6", f"2.36-{self.day}"))
        return found, f"2025-11-0{self.day}T11:00:00Z"

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
        return Resolvers(
            debian=self.debian, wheels=self.wheels, uv=lambda: f"0.9.{self.day}", digest=self.digest
        )

    def digest(self, image: str) -> str:
        self.asked.append((image,))
        return f"sha256:{self.day:064}"


def make(cell: Cell, previous: Lock | None, world: World, *upgrade: Any, template: str = "1" * 64) -> Lock:
    return make_lock(
        cell,
        previous,
        set(upgrade),
        template_version=template,
        resolvers=world.resolvers,
    )


LOCKED = make(CELL, None, World())


def test_a_first_lock_resolves_everything() -> None:
    world = World()
    lock = make(CELL, None, world)
    assert world.asked == [
        ("bookworm", PACKAGES),
        # The wheels' platform comes from the base's own libc6.
        (CELL.name, "x86_64-manylinux_2_36"),
    ]
    assert [p.name for p in lock.debian] == ["libc6", "python3.11"]
    assert [w.name for w in lock.wheels] == ["nvidia-cublas-cu12", "pip", "tensorflow", "uv"]
    assert lock.debian_locked_at == "2025-11-01T11:00:00Z"
    assert (lock.requirements, lock.debian_packages) == ((*ROW.requirements, CUBLAS), PACKAGES)
    assert lock.require_cuda == facts.require_cuda("2.15.1", "12.2")
    assert (lock.wheel_platform, lock.cuda_from) == ("x86_64-manylinux_2_36", "wheels")
    assert (lock.interpreter, lock.base_image, lock.base_digest) == (None, "", "")
    assert lock.complete
    assert (lock.epoch, lock.cuda_epoch, lock.base_epoch, lock.exclude_newer, lock.uv, lock.suite) == (
        1710892800,
        1690000000,
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
    cell = replace(
        CELL, row=replace(ROW, trim=trim, keep=trim), cuda_set=cuda, base=replace(BASE, epoch=1800000000)
    )
    lock = make(cell, LOCKED, World(day=2), template="2" * 64)
    assert lock == replace(
        LOCKED,
        trim=trim,
        keep=trim,
        epoch=1800000000,
        cuda_epoch=5,
        base_epoch=1800000000,
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


def test_the_accepted_drivers_follow_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "require_cuda", lambda tensorflow, cuda: f"cuda>={cuda}")
    assert make(CELL, LOCKED, World(day=2)) == replace(LOCKED, require_cuda="cuda>=12.2")


def base(**changes: Any) -> Cell:
    return replace(CELL, base=replace(BASE, **changes))


def row(**changes: Any) -> Cell:
    return replace(CELL, row=replace(ROW, **changes))


def cuda(**changes: Any) -> Cell:
    return replace(CELL, cuda_set=replace(CUDA, **changes))


@pytest.mark.parametrize(
    ("cell", "says", "which"),
    [
        (base(suite="trixie"), "is trixie, locked is bookworm", "debian"),
        (base(packages=("apt", "zlib1g")), "Debian packages: zlib1g new", "debian"),
        (base(packages=()), "Debian packages: apt no longer there", "debian"),
        (row(requirements=("tensorflow==2.16.1", "pip")), "requirements: tensorflow==2.16.1 new", "wheels"),
        (row(requirements=(*ROW.requirements, "keras_core")), "requirements: keras_core new", "wheels"),
        (row(requirements=ROW.requirements[:1]), "requirements: pip no longer there", "wheels"),
        (cuda(wheels=()), "nvidia-cublas-cu12==12.2 no longer there", "wheels"),
        (cuda(wheels=("nvidia-cublas-cu12==12.3",)), "nvidia-cublas-cu12==12.3 new", "wheels"),
        (row(exclude_newer="2024-04-01T00:00:00Z"), "2024-04-01T00:00:00Z, locked is 2024-03-20T", "wheels"),
        (cuda(without=()), "nvidia-nccl-cu12 is no longer left out", "wheels"),
        (replace(base(packages=()), cuda_set=replace(CUDA, wheels=())), "apt no longer", "all"),
    ],
)
def test_a_matrix_that_asks_for_something_else_is_told_what_to_type(
    cell: Cell, says: str, which: str
) -> None:
    world = World()
    with pytest.raises(UsageError, match=says) as caught:
        make(cell, LOCKED, world)
    assert caught.value.remedy == f"tfenv lock {cell.name} --upgrade {which}"
    assert world.asked == []
    anew = make(cell, LOCKED, World(), *(("wheels", "debian") if which == "all" else (which,)))
    assert make(cell, anew, World(day=2)) == anew


def test_the_remedy_does_what_is_typed_and_what_is_needed() -> None:
    with pytest.raises(UsageError, match="no longer there") as caught:
        make(base(packages=()), LOCKED, World(), "wheels")
    assert caught.value.remedy == f"tfenv lock {CELL.name} --upgrade all"


def test_another_order_asks_for_nothing_new() -> None:
    turned = tuple(reversed(ROW.requirements))
    world = World(day=2)
    assert make(row(requirements=turned), LOCKED, world) == replace(LOCKED, requirements=(*turned, CUBLAS))
    assert world.asked == []


def test_up_goes_on_with_todays_packages() -> None:
    world = World(day=3)
    lock = with_todays_debian(LOCKED, world.resolvers, PACKAGES)
    assert world.asked == [("bookworm", PACKAGES)]
    assert [p.version for p in lock.debian] == ["2.36-3", "3.11.3"]
    assert replace(lock, debian=LOCKED.debian, debian_locked_at=LOCKED.debian_locked_at) == LOCKED


def test_the_same_mirror_gives_the_same_lock() -> None:
    assert with_todays_debian(LOCKED, World().resolvers, PACKAGES) == LOCKED
    assert make(CELL, LOCKED, World(), "debian") == LOCKED
    assert with_todays_debian(LOCKED, World(day=2).resolvers, PACKAGES) != LOCKED


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
