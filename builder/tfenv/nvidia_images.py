"""What is in an image that others publish: read from its name and from the published lists.

Only what a name says for certain is told: ``nvidia/cuda`` tags name CUDA, flavour and distribution, and the
exact cuDNN of each is in NVIDIA's Dockerfiles. Tags move: see ``history``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from . import factfiles
from .versions import order

Brings = Literal["yes", "no", "unknown"]
_TAG = re.compile(
    r"(?P<cuda>\d+\.\d+(?:\.\d+)?)(?:-(?P<cudnn>cudnn\d*))?-(?P<flavour>base|runtime|devel)"
    r"(?:-(?P<distro>[a-z]+)(?P<release>[0-9.]+))?"
)
_DEBIAN = {"stretch": "9", "buster": "10", "bullseye": "11", "bookworm": "12", "trixie": "13"}
_UBUNTU = {"xenial": "16.04", "bionic": "18.04", "focal": "20.04", "jammy": "22.04", "noble": "24.04"}
_PLAIN = re.compile(r"(?P<distro>debian|ubuntu)(?P<release>[0-9.]+)")


@dataclass(frozen=True, kw_only=True)
class Image:
    """What an image's name says.

    Args:
        name: as it was given; repository: without registry, e.g. ``nvidia/cuda``; tag; digest.
        cuda, cudnn_name, flavour: of an ``nvidia/cuda`` tag: ``12.5.1``, ``cudnn``, ``runtime``.
        distro, release: ``ubuntu`` ``22.04``; empty where the name does not say.
        python: of a ``python:`` image, e.g. ``3.12``.
    """

    name: str
    repository: str
    tag: str = ""
    digest: str = ""
    cuda: str = ""
    cudnn_name: str = ""
    flavour: str = ""
    distro: str = ""
    release: str = ""
    python: str = ""

    @property
    def is_nvidia_cuda(self) -> bool:
        """Whether it is one of NVIDIA's CUDA images."""
        return self.repository == "nvidia/cuda"

    @property
    def is_musl(self) -> bool:
        """Whether its C library is musl."""
        return self.distro == "alpine"

    @property
    def brings_cuda(self) -> Brings:
        """Whether CUDA's libraries (more than cudart) are in it, as far as the name says."""
        if self.is_nvidia_cuda:
            return "unknown" if not self.flavour else "no" if self.flavour == "base" else "yes"
        if self.repository == "tensorflow/tensorflow":
            return "yes" if "gpu" in self.tag else "no"
        return "no" if self.repository in _OFFICIAL else "unknown"

    @property
    def tensorflow(self) -> str:
        """The release in one of TensorFlow's own images; empty where its name does not say."""
        found = re.match(r"\d+\.\d+\.\d+", self.tag) if self.repository == "tensorflow/tensorflow" else None
        return found[0] if found else ""

    @property
    def sets_nvidia_variables(self) -> Brings:
        """Whether NVIDIA_VISIBLE_DEVICES and the like are set in it."""
        if self.is_nvidia_cuda or self.brings_cuda == "yes":
            return "yes"
        return "no" if self.repository in _OFFICIAL else "unknown"

    @property
    def has_python(self) -> Brings:
        """Whether a python and a pip are in it."""
        if self.repository == "python":
            return "yes"
        return "no" if self.is_nvidia_cuda or self.repository in _OFFICIAL else "unknown"

    @property
    def is_floating(self) -> bool:
        """Whether the name means another image from time to time by intention: latest, nightly, no tag."""
        if self.digest or (self.repository in ("scratch", "debian", "ubuntu") and self.release):
            return False
        return not self.tag or bool(re.match(r"(latest|nightly|stable|edge|main|master|dev)\b", self.tag))


@dataclass(frozen=True, kw_only=True)
class Cudnn:
    """The cuDNN of an ``nvidia/cuda`` tag: exact versions, one if it is certain.

    Args:
        inferred_from: the Ubuntu releases whose tags say so, where the tag itself is in no list.
    """

    versions: tuple[str, ...]
    inferred_from: tuple[str, ...] = ()


_OFFICIAL = ("python", "debian", "ubuntu", "alpine", "buildpack-deps")


def parse(name: str) -> Image:
    """What an image's name says; as good as nothing for one that is not known."""
    rest, _, digest = name.strip().partition("@")
    head, _, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    path = f"{head}/{last}" if head else last
    for registry in ("docker.io/", "index.docker.io/", "registry-1.docker.io/", "nvcr.io/", "library/"):
        path = path.removeprefix(registry)
    distro, release = _distro(path, tag)
    values: dict[str, str] = {}
    if plain := _PLAIN.fullmatch(path) if not tag else None:
        path, distro, release = plain["distro"], plain["distro"], plain["release"]
    elif path == "nvidia/cuda" and (match := _TAG.fullmatch(tag)):
        values = {"cuda": match["cuda"], "cudnn_name": match["cudnn"] or "", "flavour": match["flavour"]}
        distro, release = match["distro"] or "", match["release"] or ""
    elif path == "python" and (found := re.match(r"\d+\.\d+", tag)):
        values = {"python": found[0]}
    return Image(name=name, repository=path, tag=tag, digest=digest, distro=distro, release=release, **values)


def cudnn(image: Image) -> Cudnn | None:
    """The cuDNN in an ``nvidia/cuda`` tag; None if the tag has none, or nothing is known of it."""
    if not image.cudnn_name:
        return None
    known = _by_release(image.cuda)
    exact = known.get(image.release, {}).get(image.cudnn_name)
    if exact:
        return Cudnn(versions=(exact,))
    others = {release: has.get(image.cudnn_name) for release, has in known.items()}
    found = {release: version for release, version in others.items() if version}
    versions = tuple(sorted(set(found.values()), key=order))
    return Cudnn(versions=versions, inferred_from=tuple(found)) if found else None


def state(image: Image) -> str:
    """``supported``, ``unsupported``, ``removed``, ``withdrawn`` (the whole line) or ``unlisted``."""
    if order(image.cuda or "0") < order(_data()["withdrawn"]["before"]) and image.cuda:
        return "withdrawn"
    row = _data()["tags"].get(image.cuda)
    if row is None or image.release not in row["cudnn"]:
        return "unlisted"
    return str(row["state"])


def last_seen(image: Image) -> str:
    """The date at which the tag's line was last seen in the registry; empty if not known."""
    return str(_data()["tags"].get(image.cuda, {}).get("last_seen", ""))


def withdrawn_lines() -> tuple[str, ...]:
    """The CUDA versions of which no image is left."""
    return tuple(_data()["withdrawn"]["lines"])


def variants(cuda: str) -> tuple[str, ...]:
    """The cuDNN variants that exist for a CUDA version, with the exact cuDNN: ``cudnn9 (9.0.0.312)``."""
    found = {f"{k} ({v})" if v else k for has in _by_release(cuda).values() for k, v in has.items()}
    return tuple(sorted(found))


def releases(cuda: str) -> tuple[str, ...]:
    """The Ubuntu releases for which images of a CUDA version are listed."""
    return tuple(_by_release(cuda))


def history(image: Image) -> tuple[tuple[str, str], ...]:
    """What was pushed under the tag: (date, exact cuDNN), oldest first; empty if it is not known to move."""
    return tuple((day, version) for day, version in _data()["repushed"]["rows"].get(image.tag, ()))


def digest(image: Image) -> str:
    """A digest that public files record for the tag; empty if none is known."""
    return str(_data()["digests"].get(image.tag, {}).get("digest", ""))


def lacks_compiler(image: Image) -> bool:
    """Whether ptxas, libdevice and CUPTI are missing, as they are in all flavours but devel."""
    return image.is_nvidia_cuda and image.flavour in _data()["no_compiler"]["flavours"]


def tags_serving(cuda_minor: str, flavour: str = "runtime") -> tuple[str, ...]:
    """Tags with a cuDNN that exist for a CUDA minor release, e.g. ``11.8``; the newest release last."""
    found = []
    for cuda, row in _data()["tags"].items():
        if f"{cuda}.".startswith(f"{cuda_minor}.") and row["state"] != "removed":
            for release, has in row["cudnn"].items():
                found += [f"{cuda}-{name}-{flavour}-ubuntu{release}" for name in has]
    return tuple(found)


def source() -> str:
    """Where the list of tags comes from."""
    return str(_data()["source"])


def as_of() -> str:
    """The date of the list of tags."""
    return str(_data()["as_of"])


def _distro(path: str, tag: str) -> tuple[str, str]:
    if path == "alpine" or re.search(r"\balpine", tag):
        return "alpine", ""
    for table, distro in ((_DEBIAN, "debian"), (_UBUNTU, "ubuntu")):
        for word, release in table.items():
            if re.search(rf"\b{word}\b", tag):
                return distro, release
    if path in ("debian", "ubuntu"):
        number = re.match(r"\d+(\.\d\d)?" if path == "ubuntu" else r"\d+", tag)
        return path, number[0] if number else ""
    found = re.search(r"\b(ubuntu|debian)[-_]?(\d+(?:\.\d+)?)", tag)
    return (found[1], found[2]) if found else ("", "")


def _by_release(cuda: str) -> dict[str, dict[str, str | None]]:
    row = _data()["tags"].get(cuda)
    return dict(row["cudnn"]) if row else {}


def _data() -> Any:
    return factfiles.read("nvidia_images")
