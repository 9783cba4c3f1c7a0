from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tfenv import facts
from tfenv.errors import NotReadyError, UsageError
from tfenv.interpreters import interpreter
from tfenv.lock import Resolvers, make_lock, once_each, with_todays_debian, write_lock
from tfenv.lockfile import read_lock
from tfenv.model import Base, Cell, CudaSet, DebianPackage, Link, Lock, Row, Rule, Wheel

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


# A base that is an image.

IMAGE = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"
UBUNTU = Base(name="ubuntu22.04", kind="nvidia", glibc="2.35", provided_pythons=("3.10", "3.11"))
GIVEN = f"sha256:{'5' * 64}"


def ubuntu(image: str = IMAGE, cuda_from: Any = "base", **changes: Any) -> Cell:
    tools = ("nvidia-cuda-nvcc-cu12==12.2",)
    cuda_set = replace(CUDA, images=(("ubuntu22.04", image),), tools=tools, **changes)
    return replace(CELL, base=UBUNTU, cuda_set=cuda_set, cuda_from=cuda_from)


BARE = make(ubuntu(), None, World())


def test_an_image_is_locked_without_asking_any_registry_or_mirror() -> None:
    world = World()
    lock = make(ubuntu(), None, world)
    assert world.asked == [(ubuntu().name, "x86_64-manylinux_2_35")]
    assert (lock.base_image, lock.base_digest, lock.cuda_from) == (IMAGE, "", "base")
    assert (lock.suite, lock.debian, lock.debian_packages, lock.debian_locked_at) == ("", (), (), "")
    assert (lock.base_epoch, lock.epoch) == (0, 1710892800)
    assert lock.requirements == (*ROW.requirements, "nvidia-cuda-nvcc-cu12==12.2")
    assert lock.interpreter == interpreter("3.11")
    assert not lock.complete


def test_the_digest_of_the_matrix_wins_and_nobody_is_asked() -> None:
    world = World(day=2)
    cell = ubuntu(f"{IMAGE}@{GIVEN}")
    lock = make(cell, None, world, "base")
    assert (lock.base_image, lock.base_digest) == (IMAGE, GIVEN) and lock.complete
    world.asked.clear()
    asked = make(ubuntu(), BARE, World(), "base")
    assert make(cell, asked, world, "base").base_digest == GIVEN != asked.base_digest
    assert world.asked == []


def test_the_registry_is_asked_for_the_digest_only_where_that_is_asked_for() -> None:
    world = World(day=2)
    asked = make(ubuntu(), BARE, world, "base")
    assert world.asked == [(IMAGE,)]
    assert asked == replace(BARE, base_digest=f"sha256:{2:064}") and asked.complete
    first = make(ubuntu(), None, World(day=2), "base")
    assert first.base_digest == asked.base_digest, "at once with the first lock too"
    later = World(day=3)
    assert make(ubuntu(), asked, later) == asked, "it is kept"
    assert make(ubuntu(), asked, later, "python") == asked
    assert later.asked == []
    assert make(ubuntu(), asked, later, "base").base_digest == f"sha256:{3:064}"


def test_a_registry_that_does_not_answer_leaves_the_lock_as_it_is() -> None:
    def silent(image: str) -> str:
        raise NotReadyError(f"no answer for {image}", remedy="later")

    resolvers = replace(World().resolvers, digest=silent)
    with pytest.raises(NotReadyError, match=IMAGE):
        make_lock(ubuntu(), BARE, {"base"}, template_version="1" * 64, resolvers=resolvers)


def test_another_image_has_no_digest_of_the_old_one() -> None:
    asked = make(ubuntu(), BARE, World(), "base")
    moved = make(ubuntu("nvidia/cuda:12.2.2-runtime-ubuntu22.04"), asked, World())
    assert (moved.base_image, moved.base_digest) == ("nvidia/cuda:12.2.2-runtime-ubuntu22.04", "")


def test_a_base_with_another_c_library_has_its_wheels_resolved_anew() -> None:
    cell = replace(ubuntu(), base=replace(UBUNTU, glibc="2.31"))
    with pytest.raises(
        UsageError, match=r"run on x86_64-manylinux_2_31, locked are those for .*_2_35"
    ) as caught:
        make(cell, BARE, World())
    assert caught.value.remedy == f"tfenv lock {cell.name} --upgrade wheels"
    assert make(cell, BARE, World(), "wheels").wheel_platform == "x86_64-manylinux_2_31"


def test_a_flavour_without_cuda_gets_the_wheels_and_their_links() -> None:
    links = (Link(name="libx.so.1", target="libx.so.2", why="it is opened by that name"),)
    lock = make(ubuntu("nvidia/cuda:12.2.2-base-ubuntu22.04", "wheels", links=links), None, World())
    assert lock.requirements == (*ROW.requirements, CUBLAS)
    assert (lock.cuda_from, lock.links) == ("wheels", links)
    assert make(ubuntu(links=links), None, World()).links == (), "in an image with CUDA they are its own"


# A Python that the base does not bring.


def test_a_python_of_the_provider_is_locked_by_hash_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = replace(CELL, python="3.10")
    lock = make(cell, None, World())
    assert lock.interpreter == interpreter("3.10")
    assert lock.debian_packages == ("apt",), "none of Debian's Python"
    newer = replace(interpreter("3.10"), version="3.10.99", sha256="9" * 64)
    monkeypatch.setattr("tfenv.interpreters.interpreter", lambda python: newer)
    world = World(day=2)
    assert make(cell, lock, world) == lock
    assert make(cell, lock, world, "python") == replace(lock, interpreter=newer)
    assert world.asked == []


def test_a_base_that_brings_the_python_needs_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.interpreters.interpreter", lambda python: pytest.fail("asked"))
    assert make(CELL, None, World(), "python").interpreter is None


# What cells share.


def test_cells_of_one_set_have_one_date_for_its_layer_whatever_their_rows() -> None:
    late = make(row(exclude_newer="2026-01-01T00:00:00Z"), None, World())
    python = make(replace(CELL, python="3.10"), None, World())
    assert late.cuda_epoch == python.cuda_epoch == LOCKED.cuda_epoch
    assert late.epoch > LOCKED.epoch


def test_many_cells_ask_once_for_what_they_share() -> None:
    world = World()
    shared = once_each(world.resolvers)
    for cell in (CELL, replace(CELL, cuda_set=replace(CUDA, cudnn="8.10")), ubuntu(), ubuntu(cudnn="8.10")):
        make_lock(
            cell, None, {"base", "wheels", "debian", "python"}, template_version="1" * 64, resolvers=shared
        )
    asked = [question for question in world.asked if question in (("bookworm", PACKAGES), (IMAGE,))]
    assert asked == [("bookworm", PACKAGES), (IMAGE,)]
    assert len(world.asked) == 6, "and once for each cell's wheels"


# What has no wheel.


def test_a_package_from_source_is_resolved_as_such() -> None:
    wanted = row(from_source=(Rule(what="wrapt", why="no wheel of that version"),))
    with pytest.raises(UsageError, match="from source: wrapt, locked: nothing") as caught:
        make(wanted, LOCKED, World())
    assert caught.value.remedy == f"tfenv lock {CELL.name} --upgrade wheels"
    source = replace(wheel("wrapt", "1.12.1", "source"), filename="wrapt-1.12.1.tar.gz")
    having = replace(LOCKED, wheels=(*LOCKED.wheels, source))
    assert make(wanted, having, World()) == having
    with pytest.raises(UsageError, match="from source: nothing, locked: wrapt"):
        make(CELL, having, World())
