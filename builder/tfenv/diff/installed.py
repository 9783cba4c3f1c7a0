"""What is installed in an image, from the texts that package managers leave; the texts may be anybody's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser

from tfenv.progress import clean

from .model import Entry, Known, unknown

_DPKG = "var/lib/dpkg/status"
_LONGEST = 200  # characters of a name or a version
_LIBRARY = re.compile(r"(?:.*/)?(lib[^/]+\.so(?:\.[0-9]+)*)")
_VERSIONED = re.compile(r"lib[^/]+\.so(?:\.[0-9]+)+")
_EXTENSION = re.compile(r"\.(?:cpython|abi3|pypy)[^/]*\.so$")
_PYTHON = re.compile(r"(?:.*/)?lib/python(3\.[0-9]+)/(?:site|dist)-packages/(?:tensorflow|pip)/__init__\.py")


def one_line(text: str) -> str:
    """A value of a foreign file: one line, not too long, nothing that drives a terminal."""
    return " ".join(clean(text).split())[:_LONGEST]


def paragraphs(text: str) -> Iterable[dict[str, str]]:
    """The paragraphs of a Debian control file; keys in lower case, continuation lines joined by newlines."""
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        found: dict[str, str] = {}
        key = ""
        for line in block.split("\n"):
            if line[:1] in (" ", "\t"):
                if key:
                    found[key] += "\n" + line.strip()
            elif ":" in line and not line.startswith("#"):
                key, _, value = line.partition(":")
                key = key.strip().lower()
                found[key] = value.strip()
        if found:
            yield found


def debian(texts: Mapping[str, str]) -> Known:
    """Debian packages and their versions; unknown where dpkg has left nothing."""
    if not any(_of_dpkg(path) for path in texts):
        return unknown("there is no list of dpkg in the image")
    found: dict[str, str] = {}
    for name, version, architecture in debian_packages(texts):
        found[f"{name}:{architecture}" if name in found else name] = version
    return Known(found)


def debian_packages(texts: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    """(name, version, architecture) of each Debian package that is installed, as dpkg lists them."""
    for path, text in sorted(texts.items()):
        for of in paragraphs(text) if _of_dpkg(path) else ():
            name, version, architecture = (
                one_line(of.get(key, "")) for key in ("package", "version", "architecture")
            )
            status = of.get("status", "install ok installed").split()
            if name and version and status[-1:] == ["installed"]:
                yield name, version, architecture


def _of_dpkg(path: str) -> bool:
    return path == _DPKG or path.startswith(f"{_DPKG}.d/")


def metadata(texts: Mapping[str, str]) -> dict[str, list[tuple[str, str, str]]]:
    """Installed Python packages: (version, path of the metadata, its text) of each, by canonical name."""
    from packaging.utils import canonicalize_name

    found: dict[str, list[tuple[str, str, str]]] = {}
    for path, text in sorted(texts.items()):
        if not path.endswith(("/METADATA", "/PKG-INFO", ".egg-info")):
            continue
        headers = HeaderParser().parsestr(text)
        name, version = (one_line(str(headers.get(key, ""))) for key in ("Name", "Version"))
        if name and version:
            found.setdefault(canonicalize_name(name), []).append((version, path, text))
    return found


def wheels(texts: Mapping[str, str]) -> Known:
    """Python packages and their versions; one that is there in several versions has them all."""
    found = metadata(texts)
    return Known(
        {
            name: " and ".join(sorted({version for version, _, _ in places}))
            for name, places in sorted(found.items())
        }
    )


def system(texts: Mapping[str, str]) -> Known:
    """The distribution, e.g. ``debian 12``."""
    values = os_release(texts)
    if values is None:
        return unknown("no os-release of it could be read")
    told = (values.get(key, "") for key in ("ID", "VERSION_ID"))
    # What an image was built from is not written into it.
    return Known({"system": " ".join(told).strip()}, False, "an image does not say what it starts from")


def os_release(texts: Mapping[str, str]) -> dict[str, str] | None:
    """What an image's os-release says, without quotation marks; None where there is none."""
    text = texts.get("etc/os-release") or texts.get("usr/lib/os-release")
    if text is None:
        return None
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: one_line(value).strip("\"'") for key, value in pairs}


def python(entries: Mapping[str, Entry], debian: Known, environment: Mapping[str, str]) -> Known:
    """The Python that TensorFlow is installed in, and its exact build where that can be told."""
    found = {match[1]: "tensorflow" in path for path in entries if (match := _PYTHON.fullmatch(path))}
    best = sorted(found, key=lambda version: (found[version], int(version.split(".")[1])))
    if not best:
        return unknown("no Python with packages was found")
    values = {"Python": best[-1]}
    build = environment.get("PYTHON_VERSION", "") or debian.values.get(f"python{best[-1]}", "")
    if build:
        values["build"] = one_line(build)
    return Known(values, bool(build), "the image does not say which build of Python it has")


def libraries(entries: Mapping[str, Entry]) -> Known:
    """Shared libraries by file name, which is what the loader looks for; the value tells contents apart."""
    found: dict[str, set[str]] = {}
    for path, entry in entries.items():
        match = _LIBRARY.fullmatch(path)
        if match and entry.kind in "fl" and not _EXTENSION.search(path):
            content = entry if entry.kind == "f" else entries.get(_beside(path, entry.content))
            found.setdefault(match[1], set())
            if content is not None and content.kind == "f":
                found[match[1]].add(content.content[:12])
    return Known({name: ", ".join(sorted(contents)) for name, contents in found.items()})


def sonames(entries: Mapping[str, Entry]) -> Known:
    """``libraries`` but for files that a link stands for: ``libGL.so.1``, not ``libGL.so.1.7.0``."""
    hidden = set()
    for path, entry in entries.items():
        name = path.rpartition("/")[2]
        # `libGL.so` is for linking, and stands for no version.
        if entry.kind == "l" and _VERSIONED.fullmatch(name) and entry.content.startswith(f"{name}."):
            hidden.add(entry.content)
    every = libraries(entries)
    return Known({name: content for name, content in every.values.items() if name not in hidden})


def _beside(path: str, name: str) -> str:
    """A file in the same folder; empty where the link leads elsewhere."""
    return f"{path.rpartition('/')[0]}/{name}".lstrip("/") if "/" not in name else ""
