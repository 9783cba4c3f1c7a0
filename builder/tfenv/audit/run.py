"""What ``tfenv facts audit`` does: list, read what is new, gather by release, write, and say what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfenv.audit import datafile, deep, shallow
from tfenv.audit.listing import IndexFile, wheels_of
from tfenv.audit.release import facts_of, gathered
from tfenv.audit.survey import Outcome, Reading, Surveyor
from tfenv.audit.telling import Told, note, told
from tfenv.audit.trees import FolderTree
from tfenv.errors import EXIT_FAILED, EXIT_OK, IntegrityError, TfenvError, UsageError
from tfenv.versions import is_final, order

PROJECT = "tensorflow"
SINCE = "2.4"
DEEP = Reading(name="deep", version=deep.VERSION, read=deep.read, large=True)
SHALLOW = Reading(name="shallow", version=shallow.VERSION, read=shallow.read)


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where wheels come from and how they are reached; tests give their own.

    Args:
        listing: all wheels of the project that the user's indexes have.
        note: says something to the user.
    """

    listing: Callable[[], tuple[IndexFile, ...]]
    surveyor: Surveyor
    note: Callable[[str], None]


def host(*, whole: bool = False) -> Host:
    """This host, with the user's own index settings."""
    from tfenv.console import Console
    from tfenv.index import discover
    from tfenv.memo import Memo
    from tfenv.simple_index import open_index
    from tfenv.store import default_store

    settings, store = discover(), default_store()

    def listing() -> tuple[IndexFile, ...]:
        index = open_index()
        if not index.urls:
            raise UsageError(
                "no package index is configured",
                remedy="name one: pip config set global.index-url URL; or take no-index out",
            )
        return wheels_of(PROJECT, index, SINCE)

    store.tmp_dir.mkdir(parents=True, exist_ok=True)
    surveyor = Surveyor(
        memo=Memo(store.memo_dir), session=settings.requests_session, scratch=store.tmp_dir, whole=whole
    )
    return Host(listing=listing, surveyor=surveyor, note=Console().note)


def audit(
    file: Path, wanted: Iterable[str], *, libraries: bool = False, whole: bool = False, on: Host | None = None
) -> Told:
    """Read the wheels and write the facts; (data, text, exit code).

    Args:
        libraries: also read the large libraries, of one wheel of each release.
    """
    on = on or host(whole=whole)
    before = datafile.load(file)
    listed = _by_release(_chosen(on.listing(), wanted))
    outcomes = _read(on, [wheel for wheels in listed.values() for wheel in wheels], SHALLOW)
    troubles = [(o.wheel.filename, o.error) for o in outcomes if o.error]
    # An entry of some of a release's wheels would pass for one of all.
    unread = {o.wheel.version for o in outcomes if o.error}
    after = dict(before)
    for version in listed:
        if version not in unread:
            after[version] = gathered(version, [o for o in outcomes if o.wheel.version == version])
    speaking = _speaking(listed, after)
    deeper = (
        _read(on, speaking, DEEP) if libraries else [k for w in speaking if (k := on.surveyor.known(w, DEEP))]
    )
    troubles += [(o.wheel.filename, o.error) for o in deeper if o.error]
    read = {o.wheel.version: _deep_entry(o) for o in deeper if o.found}
    for version in listed:
        if version in unread:
            continue
        entry = after[version]
        kept = read.get(version) or _still_true(before.get(version), entry)
        entry |= {"deep": kept} if kept else {}
        try:
            facts_of(entry)
        except TfenvError as error:
            troubles.append((version, error))
            after.pop(version)
            after |= {version: before[version]} if version in before else {}
    changed = datafile.write(file, after)
    return told(file, outcomes, deeper, troubles, changed=changed)


def _speaking(listed: Mapping[str, list[IndexFile]], entries: Mapping[str, Any]) -> list[IndexFile]:
    """Of each release the GPU wheel for the newest Python."""
    names = {entry["wheels"][-1]["filename"] for entry in entries.values() if entry["wheels"]}
    return [wheel for wheels in listed.values() for wheel in wheels if wheel.filename in names]


def _deep_entry(outcome: Outcome) -> dict[str, Any]:
    wheel = outcome.wheel
    told = {"wheel": wheel.filename, "sha256": wheel.sha256, "version": DEEP.version}
    return {**told, "bytes_read": outcome.fetched, **(outcome.found or {})}


def _still_true(before: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the file says of the libraries, if it is of this very wheel and read in today's way."""
    known: dict[str, Any] | None = (before or {}).get("deep")
    if known is None or not entry["wheels"] or known["version"] != DEEP.version:
        return None
    return known if known["sha256"] == entry["wheels"][-1]["sha256"] else None


def compare(file: Path, wanted: Iterable[str], *, on: Host | None = None) -> Told:
    """What the index has that the file has not, and the other way round; nothing is written."""
    on = on or host()
    kept = {
        wheel["filename"]: wheel
        for entry in datafile.load(file).values()
        for wheel in _wheels_of_entry(entry)
    }
    listed = {wheel.filename: wheel for wheel in _chosen(on.listing(), wanted)}
    new = sorted(set(listed) - set(kept))
    gone = [] if tuple(wanted) else sorted(set(kept) - set(listed))
    differs = [
        f"{name}: {key} is {getattr(wheel, key)!r}, the file says {kept[name][key]!r}"
        for name, wheel in listed.items()
        for key in ("sha256", "size", "yanked", "uploaded")
        if name in kept and key in kept[name] and kept[name][key] != getattr(wheel, key)
    ]
    data = {"new": new, "gone": gone, "differs": differs}
    lines = [f"new on the index: {name}" for name in new]
    lines += [f"no longer on the index: {name}" for name in gone] + differs
    code = EXIT_FAILED if lines else EXIT_OK
    text = "\n".join(lines) or f"{file.name} has all {len(listed)} wheels of the index"
    return data, text, code


def of_folder(folder: Path, *, libraries: bool = False) -> tuple[dict[str, Any], str]:
    """The same reading of an installed TensorFlow: facts with their sources."""
    from tfenv.audit.show import lines

    tree = FolderTree(folder)
    read = shallow.read(tree)
    if not _is_version(read["version"]):
        raise IntegrityError(
            f"METADATA says that its version is {read['version'][:40]!r}",
            remedy="this installation is damaged: install TensorFlow again",
        )
    installed = {"filename": str(tree.root), "python": "", "uploaded": "", "yanked": ""}
    entry = {"prerelease": not is_final(read["version"]), "read": read, "wheels": [installed]}
    if libraries:
        entry["deep"] = {"wheel": str(tree.root), **deep.read(tree)}
    facts = facts_of(entry)
    for unknown in ("released", "yanked", "pythons"):
        del facts[unknown], facts["source"][unknown]
    data = {"tensorflow": read["version"], "folder": str(tree.root), **facts}
    return data, "\n".join(lines(read["version"], facts))


def _is_version(text: str) -> bool:
    try:
        return bool(order(text))
    except ValueError:
        return False


def _read(on: Host, wheels: list[IndexFile], reading: Reading) -> list[Outcome]:
    outcomes = []
    for outcome in on.surveyor.survey(wheels, reading):
        outcomes.append(outcome)
        if outcome.now:
            on.note(note(outcome))
    return outcomes


def _chosen(wheels: Iterable[IndexFile], wanted: Iterable[str]) -> list[IndexFile]:
    wheels, wanted = list(wheels), set(wanted)
    known = {wheel.version for wheel in wheels}
    if wanted - known:
        raise UsageError(
            f"the index has no Linux x86_64 wheel of tensorflow {', '.join(sorted(wanted - known))}",
            remedy=f"it has: {', '.join(sorted(known, key=order))}",
        )
    return [wheel for wheel in wheels if not wanted or wheel.version in wanted]


def _by_release(wheels: Iterable[IndexFile]) -> dict[str, list[IndexFile]]:
    found: dict[str, list[IndexFile]] = {}
    for wheel in wheels:
        found.setdefault(wheel.version, []).append(wheel)
    return found


def _wheels_of_entry(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*entry["wheels"], *({"filename": name} for name in entry["cpu_only"])]
