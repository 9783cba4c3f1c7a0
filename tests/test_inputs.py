"""What names a build: everything that decides its bytes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import matrices
import pytest
import small
from small import Place
from tfenv import inputs, lockfile, render
from tfenv.inputs import Inputs
from tfenv.model import Link, Lock, Rule

CHANGES: dict[str, Callable[[Lock], Lock]] = {
    "another wheel": lambda lock: replace(
        lock, wheels=(replace(lock.wheels[0], sha256="f" * 64), *lock.wheels[1:])
    ),
    "a wheel less": lambda lock: replace(lock, wheels=lock.wheels[1:]),
    "another Debian package": lambda lock: replace(lock, debian=(replace(lock.debian[0], version="2"),)),
    "another epoch": lambda lock: replace(lock, epoch=lock.epoch + 1),
    "another epoch of the CUDA layer": lambda lock: replace(lock, cuda_epoch=lock.cuda_epoch + 1),
    "another base epoch": lambda lock: replace(lock, base_epoch=lock.base_epoch + 1),
    "other files trimmed": lambda lock: replace(lock, trim=(Rule(what="x/**", why="not needed here"),)),
    "other files kept": lambda lock: replace(lock, keep=(Rule(what="y/**", why="somebody wants it"),)),
    "another uv": lambda lock: replace(lock, uv="1.0"),
    "other drivers accepted": lambda lock: replace(lock, require_cuda="cuda>=12.2"),
    "another base image": lambda lock: replace(lock, base_image=matrices.IMAGE),
    "another base digest": lambda lock: replace(lock, base_digest=matrices.DIGEST),
    "another Python": lambda lock: replace(lock, interpreter=small.interpreter("3.10")),
    "other C library": lambda lock: replace(lock, wheel_platform="x86_64-manylinux_2_28"),
    "another name of a library": lambda lock: replace(
        lock, links=(Link(name="libcupti.so.11.2", target="libcupti.so.11.8", why="it is opened"),)
    ),
    "other templates": lambda lock: replace(lock, template="f" * 64),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_of_the_lock_counts_whatever_the_files_say(here: Place, change: str) -> None:
    files = render.render(here.cell, here.lock)
    before = Inputs(here.cell, here.lock, True, files)
    after = Inputs(here.cell, CHANGES[change](here.lock), True, files)
    assert after.lock_hash != before.lock_hash
    assert after.hash != before.hash


@pytest.mark.parametrize("name", ["Dockerfile", "requirements.lock"])
def test_every_rendered_file_counts(here: Place, name: str) -> None:
    before = here.inputs
    changed = {**before.files, name: before.files[name] + "# more\n"}
    fewer = {other: text for other, text in before.files.items() if other != name}
    renamed = {**fewer, f"{name}.new": before.files[name]}
    hashes = {replace(before, files=files).hash for files in (before.files, changed, fewer, renamed)}
    assert len(hashes) == 4


def test_the_mark_of_a_lock_that_is_not_committed_counts(here: Place) -> None:
    other = inputs.unlocked(here.cell, here.lock)
    assert (other.locked, here.inputs.locked) == (False, True)
    assert other.lock_hash == here.inputs.lock_hash
    assert f'{render.LABEL_PREFIX}.locked="false"' in other.files["Dockerfile"]
    assert other.hash != here.inputs.hash


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("tfenv.render.template_version", lambda kind: "another"),
        ("tfenv.rootfs.recipe_version", lambda: "another"),
        ("tfenv.buildx.EXPORT", ("compression=gzip",)),
    ],
)
def test_what_writes_the_files_counts(
    here: Place, fresh_templates: None, monkeypatch: pytest.MonkeyPatch, what: str, value: object
) -> None:
    before = here.inputs
    name = before.hash
    monkeypatch.setattr(what, value)
    assert replace(before).hash != name


def test_nothing_else_counts(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = here.inputs
    name = before.hash
    monkeypatch.setenv("TFENV_CACHE", "/elsewhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy:1")
    monkeypatch.chdir("/")
    lock = lockfile.load_lock(lockfile.dump_lock(here.lock))
    again = Inputs(here.cell, lock, True, dict(reversed(list(before.files.items()))))
    assert (again.hash, again.lock_hash, again.building) == (name, before.lock_hash, before.building)


def test_the_passing_name_is_of_the_hash(here: Place) -> None:
    assert here.inputs.building == f"tfenv-building:{here.inputs.hash[:16]}"
    assert inputs.unlocked(here.cell, here.lock).building != here.inputs.building
