"""Does a cell still resolve, and to what is locked? Asked only with --resolve: it takes a resolver's time."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import Refused, World


def resolves(subject: Subject, world: World) -> Iterator[Finding]:
    """A resolver that refuses today is the first sign that a lock cannot be made anew."""
    now = world.answers.resolved.get(subject.cell.name)
    if isinstance(now, Refused):
        yield Finding(
            cell=subject.cell.name,
            kind="does not resolve",
            severity="act",
            message=f"it no longer resolves: {now.why}",
            remedy="the lock still builds; before you lock anew, change the row's requirements "
            "or exclude the cell",
        )
    elif now is not None and subject.lock is not None:
        locked = {(w.name, w.version, w.sha256) for w in subject.lock.wheels if w.layer != "tool"}
        today = {(w.name, w.version, w.sha256) for w in now if w.layer != "tool"}
        if others := sorted({f"{name} {version}" for name, version, _ in today - locked}):
            yield Finding(
                cell=subject.cell.name,
                kind="resolves differently",
                severity="info",
                message=f"it would lock {len(others)} other wheels today",
                remedy=f"nothing, or: tfenv lock {subject.cell.name} --upgrade wheels",
                details=tuple(others),
            )


def locked(subject: Subject, _world: World) -> Iterator[Finding]:
    """A cell without a lock cannot be compared with anything."""
    if subject.lock is None:
        yield Finding(
            cell=subject.cell.name,
            kind="not locked",
            severity="info",
            message="it is not locked, so there is nothing to compare",
            remedy=f"tfenv lock {subject.cell.name}",
        )


def interpreter(subject: Subject, _world: World) -> Iterator[Finding]:
    """The provider has a later build of the cell's Python, as far as the committed table knows."""
    from tfenv.errors import UsageError
    from tfenv.interpreters import interpreter as known

    lock = subject.lock
    if lock is None or lock.interpreter is None:
        return
    try:
        now = known(subject.cell.python)
    except UsageError:
        return  # a matrix that asks for it is refused by its own check
    if now != lock.interpreter:
        yield Finding(
            cell=subject.cell.name,
            kind="newer python",
            severity="info",
            message=f"Python {now.version} of {now.released[:10]} is known, "
            f"locked is {lock.interpreter.version}",
            remedy=f"tfenv lock {subject.cell.name} --upgrade python",
        )
