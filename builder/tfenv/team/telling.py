"""What is known of an environment, in lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .about import About
from .why import Package

_SHOWN = 24  # packages that nobody asked for; the JSON has all


def lines(of: About) -> list[str]:
    """It in lines, each of which has its subject in front."""
    return [
        *_row(of),
        *([f"needs: {of.needs.in_words}; of one: tfenv explain {of.name} --gpu NAME"] if of.needs else []),
        *(f"extra {name}: {what}" for name, what in of.extras),
        *_packages("packages", of.wheels),
        *_packages("Debian packages", of.debian),
        *_image(of),
    ]


def _row(of: About) -> Iterator[str]:
    yield f"stands on: {of.row}"
    if of.pin is None:
        yield f"not locked: nothing is known of what it adds -> tfenv up {of.name}"
    elif of.behind:
        yield f"its lock is behind: {of.behind.message}"
        yield f"  -> {of.behind.remedy}"
    else:
        yield f"locked on: inputs sha256:{of.pin.inputs[:12]}, as they are now"


def _packages(what: str, packages: tuple[Package, ...]) -> Iterator[str]:
    if not packages:
        return
    asked = [package for package in packages if package.asked]
    others = [package for package in packages if not package.asked]
    yield f"{what}: {len(asked)} asked for, {len(others)} that these need"
    wide = max(len(f"{package.name} {package.version}") for package in asked) if asked else 0
    for package in asked:
        yield f"  {f'{package.name} {package.version}':<{wide}}  {package.why}"
    if others:
        yield f"  and {_some(_short(package) for package in others)}"


def _short(of: Package) -> str:
    return f"{of.name} {of.version}" + (f" ({of.why})" if of.needed_by else "")


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = f", and {len(every) - _SHOWN} more (--json has all)" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def _image(of: About) -> Iterator[str]:
    if of.image:
        yield f"image: {of.image}, {'recorded' if of.built == 'recorded' else 'built on this machine'}"
    elif of.pin is not None:
        yield f"image: never built here, and no digest is recorded -> tfenv up {of.name}"
    if of.proofs:
        yield from (f"verified: {proof.sentence}" for proof in of.proofs)
    else:
        yield "verified: no report of its image" + (f" -> tfenv verify {of.name}" if of.image else "")
        yield from (f"  of {of.row}, which it stands on: {proof.sentence}" for proof in of.row_proofs)
