"""The line that keeps a culprit out: as short as it can be, and checked against both versions."""

from __future__ import annotations

from collections.abc import Sequence

from tfenv.bisect.changes import Rules
from tfenv.bisect.model import Change, Pin, PinSet


def constraints(culprit: Change, good: PinSet, bad: PinSet, rules: Rules) -> tuple[str, ...]:
    """Lines for a requirements file; one of them, or all where several are given, keeps a change out.

    Empty where no line can: a package that is new and that the user's own requirements ask for.
    """
    if culprit.before and culprit.after:
        return (_between(culprit.before, culprit.after),)
    if culprit.before:
        return (_kept(culprit.before),)
    assert culprit.after is not None
    return tuple(_between(old, pin) for pin, old in _who_brings(culprit.after.name, good, bad, rules))


def _between(before: Pin, after: Pin) -> str:
    """What the version before meets and the one after does not."""
    from packaging.version import InvalidVersion, Version

    try:
        old, new = Version(before.version), Version(after.version)
    except InvalidVersion:
        return before.key
    if old.public == new.public:
        hashes = "".join(f" --hash=sha256:{sha}" for sha in before.hashes)
        return f"{before.key}{hashes}" if old == new else before.key
    operator = "<" if old < new else ">"
    tries = [f"{operator}{_short(new)}"] if not new.is_prerelease else []
    tries += [f"{operator}={old.public}", f"=={before.version}"]
    return f"{before.name}{next(t for t in tries if _parts(t, before, after))}"


def _parts(spec: str, before: Pin, after: Pin) -> bool:
    from packaging.specifiers import SpecifierSet

    told = SpecifierSet(spec)
    return told.contains(before.version, prereleases=True) and not told.contains(
        after.version, prereleases=True
    )


def _short(version: object) -> str:
    """``2.0.0`` as ``2``: the same to every comparison."""
    from packaging.utils import canonicalize_version

    text = str(version).partition("+")[0]
    return canonicalize_version(text)


def _kept(pin: Pin) -> str:
    """Something that is no longer asked for has to be asked for by name."""
    return pin.key


def _who_brings(name: str, good: PinSet, bad: PinSet, rules: Rules) -> Sequence[tuple[Pin, Pin]]:
    """The packages that ask for ``name`` now and did not before: (now, before)."""
    extras = rules.extras()
    found = []
    for pin in bad.pins:
        old = good.by_name.get(pin.name)
        asks = any(wanted == name for wanted, _ in rules.wants(pin, extras))
        if asks and old is not None and not old.same(pin):
            found.append((pin, old))
    return found
