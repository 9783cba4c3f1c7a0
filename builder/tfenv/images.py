"""The engine's side of a build: its image there, its tags, and what a tag holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import oci
from tfenv.engine import run_command
from tfenv.errors import IntegrityError, UsageError
from tfenv.render import LABEL_PREFIX

if TYPE_CHECKING:
    from tfenv.build import Built


@dataclass(frozen=True)
class Image:
    """An image in the engine. ``id`` is its manifest digest; ``lock`` the sha256 of its lock."""

    name: str
    id: str
    cell: str
    lock: str


def settle(built: Built, env: Mapping[str, str]) -> bool:
    """Make sure that the engine has the image; says whether its archive had to be loaded."""
    from tfenv.container import connect

    with connect(env) as containers:
        if containers.inspect(built.digest.manifest):
            return False
        prove(built.archive, built.digest.manifest)
        containers.load(built.archive)
        return True


def prove(archive: Path, manifest: str) -> None:
    """The archive is whole, and holds that image.

    Raises:
        IntegrityError: it was changed on disk; it is removed.
    """
    try:
        oci.verify_blobs(archive)
        if oci.describe(archive).manifest_digest == manifest:
            return
        why = f"it does not hold {manifest}"
    except IntegrityError as error:
        why = error.message
    archive.unlink(missing_ok=True)
    raise IntegrityError(
        f"an archive of the store was changed on disk and has been removed: {why}",
        remedy="type the command again: it is built anew",
    )


def tag(image: str, tags: tuple[str, ...], env: Mapping[str, str], *, passing: str = "") -> bool:
    """Move all ``tags`` to the image, or none; was anything moved?

    Args:
        passing: a name that is removed once the tags hold the image.
    """
    from tfenv.container import connect

    with connect(env) as containers:
        there = all(containers.inspect(name) == image for name in tags)
        if not there:
            containers.tag(image, tags)
        if passing and containers.inspect(passing):
            containers.remove(passing)
        return not there


def ids(names: tuple[str, ...], env: Mapping[str, str]) -> dict[str, str]:
    """The image that each name means, by its id; empty for one that means none."""
    from tfenv.container import connect

    with connect(env) as containers:
        return {name: containers.inspect(name) or "" for name in names}


def find(names: tuple[str, ...], env: Mapping[str, str], *, cell: str = "") -> Image:
    """The first of ``names`` that the engine has; ``cell`` is what would have to be built, if they are one's.

    Raises:
        UsageError: it has none.
    """
    from tfenv.container import connect

    with connect(env) as containers:
        for name in names:
            if (known := containers.inspect(name)) and (told := containers.image(name)):
                labels = (told.get("Config") or {}).get("Labels") or {}
                lock = labels.get(f"{LABEL_PREFIX}.lock", "").removeprefix("sha256:")
                return Image(name, known, labels.get(f"{LABEL_PREFIX}.cell", ""), lock)
    remedy = f"type: tfenv build {cell}" if cell else "see which there are: docker image ls"
    raise UsageError(f"there is no image {names[0]} here", remedy=remedy)


def forget_unfinished(client: str) -> int:
    """Remove the passing names that killed builds have left in the engine; how many there were."""
    listed = run_command([client, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "tfenv-building"])
    names = listed.stdout.split()
    if names:
        run_command([client, "image", "rm", *names])
    return len(names)
