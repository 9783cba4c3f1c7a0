"""Choose wheels: uv resolves, then exactly one wheel per package, the one an installer would take."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tfenv.errors import TfenvError, UsageError
from tfenv.index import IndexSettings, redact
from tfenv.model import Layer, Wheel
from tfenv.uv import Run, compile_pylock, url_of, uv_version
from tfenv.wheel_tags import supported_tags

if TYPE_CHECKING:
    from packaging.tags import Tag

Measure = Callable[[str], "tuple[int, str]"]
Urls = Mapping[str, tuple[str, ...]]

DEFAULT_PLATFORM = "x86_64-manylinux_2_36"


def resolve_wheels(
    requirements: Sequence[str],
    *,
    python: str,
    platform: str = DEFAULT_PLATFORM,
    exclude_newer: str,
    exempt: Iterable[str] = (),
    from_source: Iterable[str] = (),
    without: Iterable[str] = (),
    constraints: Sequence[str] = (),
    index: IndexSettings,
    uv: str,
    env: Mapping[str, str],
    run: Run = subprocess.run,
    measure: Measure | None = None,
) -> tuple[tuple[Wheel, ...], Urls]:
    """Resolve for that Python and platform on any host, and add the uv that installs.

    Args:
        requirements: e.g. ``tensorflow[and-cuda]==2.15.1``.
        python: ``3.11``; platform: ``<architecture>-manylinux_<glibc>``.
        exclude_newer: RFC 3339; wheels uploaded later do not exist. The uv that installs is
            of today and exempt.
        exempt: pinned requirements whose wheels may be of any day.
        from_source: names of packages whose source archive is taken, never a wheel.
        without: names of packages not to install.
        constraints: what holds for packages that something else asks for, e.g. ``numpy==1.26.4``.
        measure: (size in bytes, sha256) of a URL, for indexes that do not tell.

    Returns the wheels sorted by name, and their URLs by sha256. Raises UsageError when the
    requirements cannot be met, NotReadyError without network.
    """
    document = compile_pylock(
        requirements,
        python=python,
        platform=platform,
        options=("--exclude-newer", exclude_newer, *_exempting(exempt), *sources(from_source)),
        overrides=[f"{name} ; python_version < '0'" for name in sorted(without)],
        constraints=constraints,
        index=index,
        uv=uv,
        env=env,
        run=run,
    )
    tool = compile_pylock(
        [f"uv=={uv_version(uv, run)}"],
        python=python,
        platform=platform,
        options=("--no-deps",),
        index=index,
        uv=uv,
        env=env,
        run=run,
    )
    tags = supported_tags(python, platform)
    chosen = [_choose(p, tags, None, measure) for p in document.get("packages", [])]
    chosen += [_choose(p, tags, "tool", measure) for p in tool.get("packages", [])]
    wheels = tuple(sorted((wheel for wheel, _ in chosen), key=lambda w: (w.name, w.layer)))
    return wheels, {wheel.sha256: urls for wheel, urls in chosen}


def _exempting(requirements: Iterable[str]) -> Iterator[str]:
    for text in requirements:
        yield from ("--exclude-newer-package", f"{text.partition('==')[0]}=false")


def sources(names: Iterable[str]) -> Iterator[str]:
    """uv's options that make it take the source archives of these packages."""
    for name in names:
        yield from ("--no-binary", name)


def layer_of(name: str) -> Layer:
    """The image layer of a package: NVIDIA's wheels are shared by all Pythons."""
    return "cuda" if name.startswith("nvidia-") else "python"


def _choose(
    package: Mapping[str, Any],
    tags: Mapping[Tag, int],
    layer: Layer | None,
    measure: Measure | None,
) -> tuple[Wheel, tuple[str, ...]]:
    from packaging.utils import parse_wheel_filename

    name, version = package["name"], package["version"]
    ranked: list[tuple[int, tuple[int, ...], str, str, Mapping[str, Any]]] = []
    for entry in package.get("wheels", []):
        filename = unquote(url_of(entry).rsplit("/", 1)[-1])
        *_, build, wheel_tags = parse_wheel_filename(filename)
        rank = min((tags[tag] for tag in wheel_tags if tag in tags), default=None)
        if rank is not None:
            # The higher build number wins, as the wheel specification says.
            order = (-build[0],) if build else (0,)
            ranked.append((rank, order, filename, url_of(entry), entry))
    if not ranked and "sdist" in package:
        return _source(name, version, package["sdist"], measure)
    if not ranked:
        raise UsageError(
            f"{name} {version} has no wheel for this Python and platform",
            remedy="choose another Python in matrix.yaml, or another version of the package",
        )
    best = min(ranked, key=lambda item: item[:4])
    filename, entry = best[2], best[4]
    # The same file may be offered by several indexes.
    urls = tuple(
        dict.fromkeys(item[3] for item in sorted(ranked, key=lambda i: i[:4]) if item[2] == filename)
    )
    size, sha256 = entry.get("size"), entry.get("hashes", {}).get("sha256")
    if size is None or sha256 is None:
        size, sha256 = _measured(name, urls[0], size, sha256, measure)
    wheel = Wheel(
        name=name,
        version=version,
        filename=filename,
        size=int(size),
        sha256=sha256,
        layer=layer or layer_of(name),
    )
    return wheel, urls


def _source(
    name: str, version: str, entry: Mapping[str, Any], measure: Measure | None
) -> tuple[Wheel, tuple[str, ...]]:
    url = url_of(entry)
    size, sha256 = entry.get("size"), entry.get("hashes", {}).get("sha256")
    if size is None or sha256 is None:
        size, sha256 = _measured(name, url, size, sha256, measure)
    filename = unquote(url.rsplit("/", 1)[-1])
    made = Wheel(name=name, version=version, filename=filename, size=int(size), sha256=sha256, layer="source")
    return made, (url,)


def _measured(
    name: str, url: str, size: int | None, sha256: str | None, measure: Measure | None
) -> tuple[int, str]:
    if measure is None:
        raise TfenvError(
            f"the index does not tell size and sha256 of {name}: {redact(url)}",
            remedy="use an index that does (PEP 503 hashes), for example by pip's index-url",
        )
    found_size, found_sha256 = measure(url)
    if sha256 not in (None, found_sha256) or size not in (None, found_size):
        raise TfenvError(
            f"{name}: the file is not what its index says: {redact(url)}",
            remedy="a mirror or proxy alters files, or the index is out of date",
        )
    return found_size, found_sha256
