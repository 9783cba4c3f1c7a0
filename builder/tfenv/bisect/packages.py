"""The stages of packages and versions: which change, of which package, to which version?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tfenv.bisect.changes import Chain, Group, Rules, chain, changes, mixture
from tfenv.bisect.constraint import constraints
from tfenv.bisect.inquiry import Inquiry, Span
from tfenv.bisect.model import Change, Pin, PinSet, Word
from tfenv.bisect.result import Culprit
from tfenv.bisect.search import smallest, transition
from tfenv.errors import NotReadyError


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the stages found.

    Args:
        around: the sets next to each other, the good one and the bad one.
        without: the span's bad set without some changes and what these are needed for.
    """

    culprit: Culprit
    around: Span
    without: Callable[[Sequence[Change]], PinSet]


@dataclass(frozen=True, kw_only=True)
class _Narrowed:
    """One change between two versions.

    Args:
        limit: the first version that is not known to be good.
    """

    change: Change
    around: Span
    limit: Pin | None = None


def by_packages(inquiry: Inquiry, span: Span, until: str) -> Found:
    """Find the culprit between two sets.

    Args:
        until: RFC 3339; versions uploaded later do not count. May be empty.
    """
    differ = changes(span.good, span.bad)
    rules = replace(inquiry.tester.rules, requires=inquiry.journal.requires)
    links = chain(differ, span.good, span.bad, rules)
    # What does not fit at an end already, a resolver or a person has put up with.
    vouched = inquiry.tester.misfits(span.good) | inquiry.tester.misfits(span.bad)
    inquiry.stage(len(links.groups), f"{len(differ)} changed packages, in {len(links.groups)} groups")

    def mixed(chosen: frozenset[int]) -> PinSet:
        return mixture(span.good, (c for i in sorted(chosen) for c in links.groups[i].changes))

    def word(chosen: frozenset[int]) -> Word:
        label = _label([links.groups[i] for i in sorted(chosen)])
        return inquiry.word(mixed(chosen), label, fits=vouched)

    found = inquiry.drive(smallest(links.needs), word)
    cores = [tuple(c for i in core for c in links.groups[i].changes) for core in found.cores]
    around = replace(span, good=mixed(found.good), bad=mixed(found.bad))
    limit: Pin | None = None
    if found.exact and len(cores) == 1 and len(cores[0]) == 1:
        narrowed = by_versions(inquiry, cores[0][0], around, vouched, until)
        cores, around, limit = [(narrowed.change,)], narrowed.around, narrowed.limit
    named = {change.name for core in cores for change in core}
    needed = (c for i in sorted(found.all) for c in links.groups[i].changes)
    verdict = inquiry.journal.verdicts.get(around.bad.digest)
    culprit = Culprit(
        changes=tuple(change for core in cores for change in core),
        along=tuple(change for change in needed if change.name not in named),
        exact=found.exact,
        after=span.after,
        since=span.since,
        keep_out=_keep_out(cores, span, rules, limit=limit, exact=found.exact),
        why=verdict.why if verdict else "",
        log=verdict.log if verdict else "",
    )

    def without(culprits: Sequence[Change]) -> PinSet:
        return mixed(_not_needing({change.name for change in culprits}, links))

    return Found(culprit=culprit, around=around, without=without)


def by_versions(
    inquiry: Inquiry, change: Change, around: Span, vouched: frozenset[str], until: str
) -> _Narrowed:
    """Narrow the change of one package down to two neighbouring versions.

    Args:
        around: the sets just before and just after that change.
        vouched: conflicts that count for nothing.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return _Narrowed(change=change, around=around)
    try:
        between = inquiry.listed(f"versions {change}", lambda: inquiry.world.between(change, until))
    except NotReadyError as error:
        inquiry.say(f"no search among the versions of {change.name}: {error.message}")
        return _Narrowed(change=change, around=around)
    if not between:
        return _Narrowed(change=change, around=around)
    versions = (before.version, *between, after.version)
    what = f"{len(between)} versions of {change.name} between {before.version} and {after.version}"
    inquiry.stage(len(between) + 1, what)

    def at(position: int) -> Pin | None:
        ends = {0: before, len(versions) - 1: after}
        return ends.get(position) or inquiry.pin(change.name, versions[position], until)

    def word(position: int) -> Word:
        pin = at(position)
        if pin is None:
            return "skip"
        return inquiry.word(_with(around.good, pin), f"{pin.name} {pin.version}", fits=vouched)

    found = inquiry.drive(transition(len(versions)), word)
    low, high = at(found.good), at(found.bad)
    assert low is not None and high is not None
    return _Narrowed(
        change=Change(name=change.name, before=low, after=high),
        around=replace(
            around,
            good=around.good if found.good == 0 else _with(around.good, low),
            bad=around.bad if found.bad == len(versions) - 1 else _with(around.good, high),
        ),
        limit=Pin(name=change.name, version=versions[found.good + 1]),
    )


def _with(pins: PinSet, pin: Pin) -> PinSet:
    return PinSet.of({**pins.by_name, pin.name: pin}.values())


def _label(groups: Sequence[Group]) -> str:
    if len(groups) == 1:
        return f"with {groups[0]}"
    return f"with {len(groups)} changes, up to {groups[-1]}"


def _not_needing(names: set[str], links: Chain) -> frozenset[int]:
    """All groups but those that hold, or cannot be without, one of these packages."""
    out = {i for i, group in enumerate(links.groups) if any(c.name in names for c in group.changes)}
    return frozenset(i for i, needs in enumerate(links.needs) if not needs & out)


def _keep_out(
    cores: Sequence[Sequence[Change]], span: Span, rules: Rules, *, limit: Pin | None, exact: bool
) -> tuple[tuple[str, ...], ...]:
    """The alternatives: where several changes are needed to fail, one of them kept out is enough."""

    def lines(change: Change) -> tuple[str, ...]:
        tight = replace(change, after=limit) if limit else change
        return constraints(tight, span.good, span.bad, rules)

    if not exact:  # it is one of these, nobody knows which
        every = tuple(line for core in cores for change in core for line in lines(change))
        return (tuple(dict.fromkeys(every)),) if every else ()
    # Changes that are only to be had together go together, so one of them speaks for all.
    told = (next((found for change in core if (found := lines(change))), ()) for core in cores)
    return tuple(alternative for alternative in told if alternative)
