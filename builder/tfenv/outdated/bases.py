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
    """A tag that NVIDIA's list no longer supports, or whose driver branch has ended, goes in the end."""
    lock = subject.lock
    if lock is None or not lock.base_image:
        return
    life = world.answers.life
    state, branch = life.image_state(lock.base_image), life.image_branch(lock.base_image)
    if state in ("unsupported", "removed"):
        why = f"is {state} by NVIDIA's list of {life.as_of}"
    elif branch is not None and branch[1] < world.today:
        why = f"came with driver branch {branch[0]}, which ended on {branch[1]}"
    else:
        return
    yield Finding(
        cell=subject.cell.name,
        kind="base may be deleted",
        severity="urgent" if state == "removed" else "act",
        message=f"{lock.base_image} {why}. NVIDIA's policy: {life.policy}",
        remedy="keep a copy of the image in a registry of your own, or take the Debian base of the same row",
    )
