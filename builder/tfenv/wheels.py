"""Choose wheels: uv resolves, then exactly one wheel per package, the one an installer would take."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.index import IndexSettings, redact
from tfenv.model import Layer, Wheel

if TYPE_CHECKING:
    from packaging.tags import Tag

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Measure = Callable[[str], "tuple[int, str]"]
Urls = Mapping[str, tuple[str, ...]]

DEFAULT_PLATFORM = "x86_64-manylinux_2_36"

# What uv says when the network, not the request, is the problem.
_NETWORK_SIGNS = (
    "error sending request",
    "dns error",
    "tcp connect error",
    "Connection refused",
    "operation timed out",
    "Network connectivity is disabled",
    "invalid peer certificate",
)


def uv_binary(env: Mapping[str, str] | None = None) -> str:
    """The uv to call: $TFENV_UV, or the one that the ``uv`` package brings."""
    env = os.environ if env is None else env
    if env.get("TFENV_UV"):
        return env["TFENV_UV"]
    from uv import find_uv_bin

    return find_uv_bin()


def uv_version(uv: str, run: Run = subprocess.run) -> str:
    """The version of that uv, e.g. ``0.9.1``."""
    done = _call(run, [uv, "--version"], "")
    match = re.match(r"uv (\d\S*)", done.stdout)
    if done.returncode or not match:
        raise NotReadyError(f"{uv} is no uv", remedy="unset TFENV_UV, or point it to a uv binary")
    return match[1]


def resolve_wheels(
    requirements: Sequence[str],
    *,
    python: str,
    platform: str = DEFAULT_PLATFORM,
    exclude_newer: str,
    without: Iterable[str] = (),
    index: IndexSettings,
    uv: str,
    run: Run = subprocess.run,
    measure: Measure | None = None,
) -> tuple[tuple[Wheel, ...], Urls]:
    """Resolve for that Python and platform on any host, and add the uv that installs.

    Args:
        requirements: e.g. ``tensorflow[and-cuda]==2.15.1``.
        python: ``3.11``; platform: ``<architecture>-manylinux_<glibc>``.
        exclude_newer: RFC 3339; wheels uploaded later do not exist. The uv that installs is
            of today and exempt.
        without: names of packages not to install.
        measure: (size in bytes, sha256) of a URL, for indexes that do not tell.

    Returns the wheels sorted by name, and their URLs by sha256. Raises UsageError when the
    requirements cannot be met, NotReadyError without network.
    """
    document = compile_pylock(
        requirements,
        python=python,
        platform=platform,
        options=("--exclude-newer", exclude_newer),
        overrides=[f"{name} ; python_version < '0'" for name in sorted(without)],
        index=index,
        uv=uv,
        run=run,
    )
    tool = compile_pylock(
        [f"uv=={uv_version(uv, run)}"],
        python=python,
        platform=platform,
        options=("--no-deps",),
        index=index,
        uv=uv,
        run=run,
    )
    tags = supported_tags(python, platform)
    chosen = [_choose(p, tags, None, measure) for p in document.get("packages", [])]
    chosen += [_choose(p, tags, "tool", measure) for p in tool.get("packages", [])]
    wheels = tuple(sorted((wheel for wheel, _ in chosen), key=lambda w: (w.name, w.layer)))
    return wheels, {wheel.sha256: urls for wheel, urls in chosen}


def compile_pylock(
    requirements: Iterable[str],
    *,
    python: str,
    platform: str,
    options: Sequence[str],
    overrides: Sequence[str] = (),
    index: IndexSettings,
    uv: str,
    run: Run = subprocess.run,
) -> dict[str, Any]:
    """What ``uv pip compile --format pylock.toml`` answers, parsed; only wheels are considered."""
    with tempfile.TemporaryDirectory(prefix="tfenv-uv-") as folder:
        command = [uv, "pip", "compile", "-", "--format", "pylock.toml", "--no-header", "--quiet"]
        command += ["--python", sys.executable, "--python-version", python]
        command += ["--python-platform", platform, "--only-binary", ":all:", *options]
        if overrides:
            file = Path(folder, "overrides.txt")
            file.write_text("\n".join(overrides) + "\n", "utf-8")
            command += ["--override", str(file)]
        command += index.uv_args()
        # In an empty folder, so that no pyproject.toml of the user's project changes the result.
        done = _call(
            run,
            command,
            "\n".join(requirements) + "\n",
            cwd=folder,
            env={**index.environment(os.environ), "NO_COLOR": "1"},
        )
    if done.returncode:
        raise _failure(done.stderr)
    return _toml(done.stdout)


def wheel_urls(document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """All URLs in a pylock document, by sha256."""
    found: dict[str, tuple[str, ...]] = {}
    for package in document.get("packages", []):
        for entry in package.get("wheels", []):
            sha256, url = entry.get("hashes", {}).get("sha256", ""), _url(entry)
            if sha256 and url not in found.get(sha256, ()):
                found[sha256] = (*found.get(sha256, ()), url)
    return found


def supported_tags(python: str, platform: str) -> dict[Tag, int]:
    """Each wheel tag that this Python on this platform accepts, with its rank (0 is best)."""
    from packaging.tags import compatible_tags, cpython_tags

    major, minor = (int(part) for part in python.split("."))
    nodot = f"cp{major}{minor}"
    abi = f"{nodot}m" if (major, minor) < (3, 8) else nodot
    platforms = list(_platforms(platform))
    ordered = [
        *cpython_tags((major, minor), abis=[abi], platforms=platforms),
        *compatible_tags((major, minor), interpreter=nodot, platforms=platforms),
    ]
    ranks: dict[Tag, int] = {}
    for rank, tag in enumerate(ordered):
        ranks.setdefault(tag, rank)
    return ranks


def layer_of(name: str) -> Layer:
    """The image layer of a package: NVIDIA's wheels are shared by all Pythons."""
    return "cuda" if name.startswith("nvidia-") else "python"


def _platforms(platform: str) -> Iterator[str]:
    """Platform tags of ``x86_64-manylinux_2_36``, the newest glibc first, with the old names."""
    match = re.fullmatch(r"(\w+)-manylinux_2_(\d+)", platform)
    if not match:
        raise UsageError(
            f"platform {platform!r} is not of the form <architecture>-manylinux_2_<minor>",
            remedy="give one like x86_64-manylinux_2_36",
        )
    arch, newest = match[1], int(match[2])
    # PEP 600's names for the platforms of PEP 513, 571 and 599.
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    for minor in range(newest, 4, -1):
        yield f"manylinux_2_{minor}_{arch}"
        if minor in legacy:
            yield f"{legacy[minor]}_{arch}"
    yield f"linux_{arch}"


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
        filename = unquote(_url(entry).rsplit("/", 1)[-1])
        *_, build, wheel_tags = parse_wheel_filename(filename)
        rank = min((tags[tag] for tag in wheel_tags if tag in tags), default=None)
        if rank is not None:
            # The higher build number wins, as the wheel specification says.
            order = (-build[0],) if build else (0,)
            ranked.append((rank, order, filename, _url(entry), entry))
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


def _url(entry: Mapping[str, Any]) -> str:
    if "url" in entry:
        return str(entry["url"])
    return Path(entry["path"]).absolute().as_uri()


def _toml(text: str) -> dict[str, Any]:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return dict(toml.loads(text))


def _call(run: Run, command: Sequence[str], text: str, **options: Any) -> Any:
    try:
        return run(list(command), input=text, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise NotReadyError(
            f"cannot run {command[0]}: {error.strerror or error}",
            remedy="install tfenv with its dependencies (it brings uv), or set TFENV_UV",
        ) from error


def _failure(stderr: str) -> TfenvError:
    """uv's own reason, without colours, warnings and passwords."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stderr)
    lines = [line.rstrip() for line in plain.splitlines() if not line.startswith("warning:")]
    reason = redact("\n".join(line for line in lines if line)) or "uv failed without a word"
    if any(sign in reason for sign in _NETWORK_SIGNS):
        return NotReadyError(
            f"the package index cannot be reached:\n{reason}",
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        )
    if "No solution found" in reason:
        return UsageError(
            f"these requirements cannot be met:\n{reason}",
            remedy="change requirements or exclude_newer of the row in matrix.yaml",
        )
    return TfenvError(
        f"uv could not resolve:\n{reason}",
        remedy="correct what uv names; `uv --version` should work, TFENV_UV names another uv",
    )
