"""From a lock, an image or both to a bill: pure, so that the same inputs give the same document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tfenv import __version__
from tfenv.diff.model import Description
from tfenv.lockfile import lock_hash
from tfenv.model import Lock
from tfenv.progress import clean
from tfenv.times import unix

from . import licences
from .model import UNKNOWN, Bill, Component, Kind, Licence
from .purl import purl

#: Tells the licence of a component; the default knows none.
Evidence = Callable[[Component], Licence]
_ORDER: Mapping[Kind, int] = {"system": 0, "image": 1, "python": 2, "wheel": 3, "source": 4, "deb": 5}


def of_lock(lock: Lock, evidence: Evidence = lambda _: UNKNOWN) -> Bill:
    """The bill of the image that a lock gives.

    Args:
        evidence: tells licences; without it they are unknown, since a lock does not hold them.
    """
    found = [*_base(lock), *_wheels(lock), *_debian(lock)]
    gaps = (f"what is in {lock.base_image}: only the image tells",) if lock.base_image else ()
    return Bill(
        subject=lock.cell,
        version=f"sha256:{lock_hash(lock)}",
        made_from="lock",
        created=lock.epoch,
        tool=__version__,
        components=_sorted(replace(of, licence=evidence(of)) for of in found),
        gaps=gaps,
    )


def _sorted(components: Iterable[Component]) -> tuple[Component, ...]:
    return tuple(sorted(components, key=lambda of: (_ORDER[of.kind], of.name, of.version, not of.in_image)))


def _base(lock: Lock) -> Iterable[Component]:
    if lock.suite:
        yield Component(kind="system", name="debian", version=lock.suite, purl="")
    if lock.base_image:
        name, _, tag = lock.base_image.rpartition(":")
        yield Component(
            kind="image",
            name=name,
            version=tag,
            purl=purl("oci", "", name.rsplit("/", 1)[-1], lock.base_digest, repository_url=name, tag=tag)
            if lock.base_digest
            else purl("docker", name.rpartition("/")[0], name.rpartition("/")[2], tag),
            sha256=lock.base_digest.removeprefix("sha256:"),
        )
    if lock.interpreter:
        of = lock.interpreter
        yield Component(
            kind="python",
            name=of.provider,
            version=of.version,
            purl=purl("generic", "", of.provider, of.version, checksum=f"sha256:{of.sha256}"),
            sha256=of.sha256,
            filename=of.filename,
        )


def _wheels(lock: Lock) -> Iterable[Component]:
    for of in lock.wheels:
        yield Component(
            kind="source" if of.layer == "source" else "wheel",
            name=of.name,
            version=of.version,
            purl=purl("pypi", "", of.name, of.version),
            sha256=of.sha256,
            filename=of.filename,
            layer=of.layer,
            in_image=of.layer != "tool",
        )


def _debian(lock: Lock) -> Iterable[Component]:
    for of in lock.debian:
        yield Component(
            kind="deb",
            name=of.name,
            version=of.version,
            purl=purl("deb", "debian", of.name, of.version, arch=of.architecture, distro=lock.suite),
            sha256=of.sha256,
            filename=of.filename,
            architecture=of.architecture,
        )


def of_image(image: Description, lock: Lock | None) -> Bill:
    """The bill of what is really installed, with the hashes of its lock where the two agree.

    Args:
        lock: what the image was built from, None where nobody knows.
    """
    named = of_lock(lock) if lock else None
    known = {(of.kind, of.name): of for of in named.components if of.in_image} if named else {}
    known |= {("wheel", name): of for (kind, name), of in known.items() if kind == "source"}
    found = []
    for of in _installed(image):
        mate = known.get((of.kind, of.name))
        if mate is not None and mate.version == of.version:
            found.append(replace(mate, licence=of.licence, where="both"))
        else:
            found.append(of)
    kinds = ("system", "image", "python")
    listed = [of for of in (named.components if named else ()) if of.kind in kinds] or [*_system(image)]
    gaps = [
        f"{what}: {table.why}"
        for what, table in (("Debian packages", image.debian), ("Python packages", image.wheels))
        if not table.complete
    ]
    return Bill(
        subject=lock.cell if lock else clean(image.name),
        version=image.digest or "unknown",
        made_from="image",
        created=lock.epoch if lock else _created(image.created),
        tool=__version__,
        components=_sorted([*listed, *found]),
        gaps=(*gaps, *image.notes),
        differences=_differences(lock, image) if lock else (),
    )


def _created(said: str) -> int:
    """Unix seconds of an image's own time; 0 where it tells none."""
    try:
        return max(unix(re.sub(r"\.[0-9]+", "", said)), 0)
    except (ValueError, OverflowError):
        return 0


def _system(image: Description) -> Iterable[Component]:
    if told := image.base.values.get("system"):
        name, _, version = told.partition(" ")
        yield Component(kind="system", name=name, version=version or "unknown", purl="", where="image")


def _installed(image: Description) -> Iterable[Component]:
    """What the package managers of an image list."""
    from tfenv.diff.installed import debian_packages, metadata, os_release

    vendor = (image.base.values.get("system") or "debian").split(" ")[0]
    suite = _codename((os_release(image.texts) or {}).get("VERSION_CODENAME", ""))
    for name, version, architecture in dict.fromkeys(debian_packages(image.texts)):
        yield Component(
            kind="deb",
            name=name,
            version=version,
            purl=purl("deb", vendor, name, version, arch=architecture, distro=suite),
            architecture=architecture,
            licence=licences.of_copyright(licences.copyright_text(name, image)),
            where="image",
        )
    texts = licences.of_dist_infos(image.entries or {})
    for name, places in metadata(image.texts).items():
        for version, path, text in {of[0]: of for of in places}.values():
            yield Component(
                kind="wheel",
                name=name,
                version=version,
                purl=purl("pypi", "", name, version),
                licence=licences.of_metadata(text, texts.get(path, "")),
                where="image",
            )


def _codename(said: str) -> str:
    return said if re.fullmatch(r"[a-z]+", said) else ""


def _differences(lock: Lock, image: Description) -> tuple[str, ...]:
    """Where what is installed is not what was locked."""
    from tfenv.diff.describe import debian_of, wheels_of
    from tfenv.diff.sections import differences

    said = []
    for what, locked, found in (
        ("Debian package", debian_of(lock), image.debian),
        ("Python package", wheels_of(lock), image.wheels),
    ):
        words = {
            "added": "{what} {name} {after} is in the image, not in the lock",
            "removed": "{what} {name} {before} is in the lock, not in the image",
            "changed": "{what} {name} is {after} in the image, {before} in the lock",
        }
        for of in differences(locked, found):
            if form := words.get(of.state):
                said.append(form.format(what=what, name=of.name, before=of.before, after=of.after))
    return tuple(said)
