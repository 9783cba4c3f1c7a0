"""The days on which an environment can have changed: when versions that could be chosen were uploaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from tfenv.bisect.changes import changes
from tfenv.bisect.model import Change, PinSet
from tfenv.simple_index import ProjectFile
from tfenv.times import instant, rfc3339

if TYPE_CHECKING:
    from packaging.tags import Tag
    from packaging.version import Version

Files = Callable[[str], Iterable[ProjectFile]]


def moments(
    good: PinSet, bad: PinSet, since: str, until: str, *, files: Files, tags: Iterable[Tag]
) -> tuple[str, ...]:
    """The moments after ``since`` and before ``until``, in order, with which a resolver may answer anew.

    Only packages whose pins differ between the ends count, and of these only versions between the two: what
    else happened meanwhile has left no trace at the ends, and does not have to be looked at.

    Args:
        since, until: RFC 3339; the first may be the later one, then the order is that way round.
        files: a project's files. tags: those of the wheels that can be installed.

    Raises:
        LookupError: an index does not tell when it got its files, so that no day can be resolved.
    """
    low, high = sorted((instant(since), instant(until)))
    accepted = frozenset(tags)
    found: set[str] = set()
    for change in changes(good, bad):
        if change.after is None:
            continue  # what goes does so because of another package
        for uploaded in _uploads(change, files(change.name), accepted):
            # One second later: a resolver leaves out what was uploaded at that very moment.
            at = uploaded.replace(microsecond=0) + timedelta(seconds=1)
            if low < at < high:
                found.add(rfc3339(at))
    ordered = sorted(found)
    return tuple(ordered if instant(since) <= instant(until) else reversed(ordered))


def versions_between(change: Change, until: str, *, files: Files, tags: Iterable[Tag]) -> tuple[str, ...]:
    """Versions of a package from the one before a change to the one after it, without the two.

    Args:
        until: RFC 3339; later ones do not count. Empty for all.
    """
    if change.before is None or change.after is None:
        return ()
    accepted = frozenset(tags)
    end = instant(until) if until else None
    found: dict[Version, str] = {}
    for version, text, uploaded in _versions(change, files(change.name), accepted):
        if end is None or uploaded is None or uploaded < end:
            found.setdefault(version, text)
    ordered = [found[version] for version in sorted(found)]
    from packaging.version import Version as Parsed

    up = Parsed(change.before.version) <= Parsed(change.after.version)
    between = [v for v in ordered if v not in (change.before.version, change.after.version)]
    return tuple(between if up else reversed(between))


def _uploads(change: Change, files: Iterable[ProjectFile], tags: frozenset[Tag]) -> Iterable[datetime]:
    first: dict[Version, datetime] = {}
    untold = ""
    for version, text, uploaded in _versions(change, files, tags):
        if uploaded is None:
            untold = text  # a resolver that is given a date does not look at such files
        else:
            first[version] = min(uploaded, first.get(version, uploaded))
    if untold and not first:
        raise LookupError(f"the index does not tell when it got {change.name} {untold}")
    return first.values()


def _versions(
    change: Change, files: Iterable[ProjectFile], tags: frozenset[Tag]
) -> Iterable[tuple[Version, str, datetime | None]]:
    """(version, as text, when) of each wheel whose version lies between the two of a change."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    try:
        ends = [Version(pin.version) for pin in (change.before, change.after) if pin is not None]
    except InvalidVersion:
        return
    low, high = (min(ends), max(ends)) if len(ends) == 2 else (None, ends[0])
    unfinished = any(end.is_prerelease for end in ends)
    for file in files:
        try:
            _, version, _, wheel_tags = parse_wheel_filename(file.filename)
        except InvalidWheelFilename:
            continue
        if version > high or (low is not None and version < low) or not wheel_tags & tags:
            continue
        if version.is_prerelease and not unfinished:
            continue
        if file.yanked is not None and version not in ends:
            continue
        yield version, str(version), _time(file.upload_time)


def _time(text: str | None) -> datetime | None:
    """RFC 3339 as indexes write it, with or without fractions of a second."""
    if not text:
        return None
    whole, _, rest = text.rstrip("Z").partition(".")
    try:
        at = instant(f"{whole}Z") if "+" not in whole else datetime.fromisoformat(whole)
        fraction = int(rest[:6].ljust(6, "0")) if rest[:6].isdecimal() else 0
    except ValueError:
        return None
    return at.astimezone(timezone.utc) + timedelta(microseconds=fraction)
