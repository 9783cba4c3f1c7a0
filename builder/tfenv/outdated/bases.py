"""The image that a cell starts from: pinned, pushed again, gone, or about to be deleted?"""

from __future__ import annotations

from collections.abc import Iterator

from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import World


def base_image(subject: Subject, world: World) -> Iterator[Finding]:
    """Compares the digest in the lock with what the registry tells of the tag today."""
    lock = subject.lock
    if lock is None or not lock.base_image:
        return
    if not lock.base_digest:
        yield Finding(
            cell=subject.cell.name,
            kind="base not pinned",
            severity="act",
            message=f"{lock.base_image} is not locked by digest, so the image is not reproducible",
            remedy=f"where its registry can be reached: tfenv lock {subject.cell.name} --upgrade base",
        )
    today = world.answers.digests.get(lock.base_image)
    if today == "":
        yield Finding(
            cell=subject.cell.name,
            kind="base gone",
            severity="urgent",
            message=f"{lock.base_image} is no longer in its registry",
            remedy="push a copy of the image to a registry of your own and name that in matrix.yaml, "
            "or take the Debian base of the same row",
        )
    elif today and lock.base_digest and today != lock.base_digest:
        yield Finding(
            cell=subject.cell.name,
            kind="base pushed again",
            severity="act",
            message=f"{lock.base_image} was pushed again: it is {today[:19]} today, "
            f"locked is {lock.base_digest[:19]}",
            remedy=f"tfenv lock {subject.cell.name} --upgrade base, then build and verify anew",
        )


def deletion(subject: Subject, world: World) -> Iterator[Finding]:
    """What NVIDIA's list says of the tag: unsupported ones are deleted in the end."""
    lock = subject.lock
    life = world.answers.life
    state = life.image_state(lock.base_image) if lock and lock.base_image else None
    if lock and state in ("unsupported", "removed"):
        yield Finding(
            cell=subject.cell.name,
            kind="base may be deleted",
            severity="act" if state == "unsupported" else "urgent",
            message=f"{lock.base_image} is {state} by NVIDIA's list of {life.as_of}: {life.policy}",
            remedy="keep a copy of the image, or take an image of the minor release's last update",
        )
