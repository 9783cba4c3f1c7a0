"""A small cell whose inputs exist, an engine that is a shell script, and images that are names in a dict."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matrices
import tiny
import zstandard
from tfenv import oci, pipeline, render
from tfenv.build import Host
from tfenv.console import Console
from tfenv.errors import NotReadyError
from tfenv.files import write_all
from tfenv.inputs import Inputs
from tfenv.lock import write_lock
from tfenv.matrix import load_matrix
from tfenv.model import Cell, DebianPackage, Interpreter, Lock, Rule, Wheel
from tfenv.store import Store
from tfenv.workspace import Workspace

CELL = "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"
TAGS = [f"tfenv:{tag}" for tag in (CELL, "2.15.1-cu12", "2.15.1", "2.15-cu12", "2.15", "latest")]
UNLOCKED_TAGS = [f"tfenv:{CELL}-unlocked", *TAGS[1:]]

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "": lambda data: data,
}


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    """A tar header."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in more.items():
        setattr(info, key, value)
    return info


Members = Sequence["tuple[tarfile.TarInfo, bytes]"]


def tarred(members: Members) -> bytes:
    """A tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def ar(members: Mapping[str, bytes]) -> bytes:
    """An ``ar`` archive, as dpkg-deb writes it."""
    out = b"!<arch>\n"
    for name, data in members.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) & 1)
    return out


def deb(members: Members, kind: str = "xz") -> bytes:
    """A Debian package; its control archive has an odd length, so that padding counts."""
    ending = f".{kind}" if kind else ""
    return ar(
        {
            "debian-binary": b"2.0\n",
            "control.tar.gz": b"odd",
            f"data.tar{ending}": PACK[kind](tarred(members)),
        }
    )


def folder(name: str, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A folder for ``deb``."""
    return member(name, tarfile.DIRTYPE, **more), b""


def file(name: str, data: bytes = b"x", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A file for ``deb``."""
    return member(name, **more), data


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    """A link for ``deb``, symbolic by default."""
    return member(name, kind, linkname=target), b""


BASE_FILES = deb([folder("./"), folder("./etc/"), file("./etc/debian_version", b"12.0\n")])


def put(store: Store, data: bytes) -> str:
    """Put bytes into a store; return their sha256."""
    sha256 = hashlib.sha256(data).hexdigest()
    with store.temp() as path:
        path.write_bytes(data)
        store.add(path, sha256)
    return sha256


def _package(name: str, data: bytes, essential: bool, version: str = "1.0") -> DebianPackage:
    return DebianPackage(
        name=name,
        version=version,
        architecture="amd64",
        archive="debian",
        path=f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        essential=essential,
    )


def _wheel(name: str, version: str, layer: Any) -> Wheel:
    data = _contents(name)
    return Wheel(
        name=name,
        version=version,
        filename=f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        layer=layer,
    )


def _contents(name: str) -> bytes:
    return f"the contents of {name}".encode()


TRIM = (Rule(what="nvidia/*/include/**", why="headers, and nothing compiles here"),)
KEEP = (Rule(what="nvidia/*/include/cuda.h", why="one that somebody wants"),)


def interpreter(python: str) -> Interpreter:
    """A Python that no base brings, as its provider names it."""
    filename = f"cpython-{python}.9+20251031-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz"
    return Interpreter(
        provider="python-build-standalone",
        version=f"{python}.9",
        filename=filename,
        path=f"20251031/{filename}",
        sha256=hashlib.sha256(_contents(filename)).hexdigest(),
        released="2025-10-31T00:00:00Z",
    )


def lock(cell: Cell, **changes: Any) -> Lock:
    """A lock of the cell; ``fill`` gives a store what it names."""
    image, _, digest = cell.image.partition("@")
    packages = (
        _package("apt", _contents("apt"), False),
        _package("base-files", BASE_FILES, True),
        _package("libc6", _contents("libc6"), False, "2.36"),
        _package("python3.11", _contents("python3.11"), False),
    )
    values: dict[str, Any] = {
        "cell": cell.name,
        "platform": "linux/amd64",
        "epoch": cell.epoch,
        "cuda_epoch": cell.cuda_set.epoch,
        "base_epoch": cell.base.epoch,
        "base_image": image,
        "base_digest": digest,
        "requirements": cell.requirements,
        "exclude_newer": cell.row.exclude_newer,
        "wheel_platform": f"x86_64-manylinux_2_{36 if cell.base.kind == 'debian' else 35}",
        "cuda_from": cell.cuda_from,
        "require_cuda": "cuda>=12.1 cuda>=12.0,arch<9.0",
        "template": render.template_version(cell.base.kind),
        "uv": "0.9.9",
        "interpreter": None if cell.base.brings(cell.python) else interpreter(cell.python),
        "suite": cell.base.suite,
        "debian_packages": cell.base.packages_for(cell.python),
        "debian_locked_at": "" if image else "2025-11-30T11:00:00Z",
        "debian": () if image else packages,
        "wheels": (
            _wheel("nvidia-cublas-cu12", "12.2.5.6", "cuda"),
            _wheel("pip", "24.0", "python"),
            _wheel("tensorflow", "2.15.1", "python"),
            _wheel("uv", "0.9.9", "tool"),
        ),
        "trim": cell.row.trim,
        "keep": cell.row.keep,
        "without": cell.cuda_set.without,
        "links": cell.cuda_set.links if cell.cuda_from == "wheels" else (),
    }
    return Lock(**{**values, **changes})


def on_image(of: Lock, image: str = matrices.IMAGE) -> Lock:
    """The same on an image whose digest nobody could ask for yet."""
    return replace(
        of,
        base_image=image,
        base_digest="",
        interpreter=interpreter("3.11"),
        suite="",
        debian_packages=(),
        debian_locked_at="",
        debian=(),
    )


def fill(store: Store, of: Lock) -> None:
    """Put all that the lock names into the store."""
    for package in of.debian:
        put(store, BASE_FILES if package.essential else _contents(package.name))
    for wheel in of.wheels:
        put(store, _contents(wheel.name))
    if of.interpreter is not None:
        put(store, _contents(of.interpreter.filename))


def workspace(root: Path, text: str = matrices.TEXT) -> Workspace:
    """A team's folder with a matrix, and every cell of it locked and rendered."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "matrix.yaml").write_text(text, encoding="utf-8")
    made = Workspace(root, {})
    for cell in load_matrix(root / "matrix.yaml").cells:
        of = lock(cell)
        write_lock(of, root / "images")
        write_all(root / "images" / cell.name, render.render(cell, of))
    return made


# Answers as the real client does; $FAKE_BUILD says how a build goes.
_DOCKER = """\
#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
for last in "$@"; do :; done
names() {
    awk '$1 == "keep" {n[$2] = 1} $1 == "rm" {delete n[$2]} END {for (i in n) print i}' "$here/events"
}
case "$1 $2" in
"buildx version") echo "github.com/docker/buildx v0.19.3 abc" ;;
"buildx inspect")
    case ${FAKE_BUILDER:-} in
    own) printf 'Name: mine\\nDriver: docker-container\\nStatus: running\\nBuildKit version: v0.20.0\\n' ;;
    *) printf 'Name: default\\nDriver: docker\\nStatus: running\\n' ;;
    esac ;;
"buildx ls") printf 'NAME/NODE DRIVER\\ndefault docker\\n' ;;
"context inspect") echo unix:///run/docker.sock ;;
"info --format")
    echo '{"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]], "DockerRootDir": "/nowhere"}' ;;
"version --format")
    case ${FAKE_BUILD:-} in
    no-engine) echo "Cannot connect to the Docker daemon at unix:///run/docker.sock" >&2; exit 1 ;;
    no-permission) echo "permission denied while trying to connect to the Docker daemon socket" >&2; exit 1 ;;
    esac
    echo '{"Client": {"Version": "26.1.5"}, "Server": {"Version": "26.1.5"}}' ;;
"image ls") names | grep "^$last:" || : ;;
"image rm")
    shift 2
    for name in "$@"; do
        names | grep -qxF "$name" || { echo "Error: No such image: $name" >&2; failed=1; continue; }
        echo "rm $name" >> "$here/events"
    done
    exit ${failed:-0} ;;
"buildx build")
    while [ $# -gt 0 ]; do
        case $1 in
        --metadata-file) metadata=$2 ;;
        --output)
            case $2 in
            type=image*) kept=${2#*name=}; kept=${kept%%,*} ;;
            *,tar=false) folder=${2#*dest=}; folder=${folder%%,*} ;;
            *) dest=${2#*dest=}; dest=${dest%%,*} ;;
            esac ;;
        esac
        shift
    done
    case ${FAKE_BUILD:-} in
    step-fails) cat "$here/fail.rawjson"; echo "ERROR: failed to solve" >&2; exit 1 ;;
    disk-full) echo "ERROR: write /x: no space left on device" >&2; exit 1 ;;
    engine-lost) echo "ERROR: error reading from server: EOF" >&2; exit 1 ;;
    hangs) printf half > "$dest"; echo $$ > "$here/hanging"; exec sleep 60 ;;
    esac
    if [ -z "${folder:-}" ]; then cp "$here/image.tar" "$dest"
    else tar -xf "$here/image.tar" -C "$folder"; fi
    label() { sed -n 's/.*dev\\.tfenv\\.'"$1"'="\\([^"]*\\)".*/\\1/p' "$last/Dockerfile"; }
    echo "labels $(cat "$here/digest") $(label cell) $(label lock)" >> "$here/events"
    [ -z "${kept:-}" ] || echo "keep $kept $(cat "$here/digest")" >> "$here/events"
    case ${FAKE_BUILD:-} in
    other-digest) echo '{"containerimage.digest": "sha256:0"}' > "$metadata" ;;
    *) printf '{"containerimage.digest": "%s"}' "$(cat "$here/digest")" > "$metadata" ;;
    esac ;;
*) echo "not known: $*" >&2; exit 1 ;;
esac
"""


class Docker:
    """The script that stands for the docker client, and what it was asked."""

    def __init__(self, where: Path) -> None:
        where.mkdir(parents=True, exist_ok=True)
        self.folder = where
        self.path = where / "docker"
        self.path.write_text(_DOCKER)
        self.path.chmod(0o755)
        (where / "events").touch()
        (where / "fail.rawjson").write_bytes((tiny.FIXTURES / "build-fail.rawjson").read_bytes())
        self.will_build(tarred([folder("etc"), file("etc/a")]), tarred([file("b")]))

    def will_build(self, *layers: bytes, kind: str = "zstd") -> None:
        """Decide what the next builds give: tar archives as layers, compressed by ``kind``."""
        packed = [PACK[kind](layer) for layer in layers]
        files = tiny.oci_files(packed, f"application/vnd.oci.image.layer.v1.tar+{kind}")
        archive = tiny.tar(self.folder / "image.tar", files)
        self.manifest = oci.describe(archive).manifest_digest
        (self.folder / "digest").write_text(self.manifest)

    @property
    def asked(self) -> list[str]:
        """Every line of arguments, in order."""
        asked = self.folder / "asked"
        return asked.read_text().splitlines() if asked.exists() else []

    @property
    def builds(self) -> int:
        """How many builds were asked for."""
        return sum(line.startswith("buildx build") for line in self.asked)

    def keep(self, name: str, image: str) -> None:
        """Let the engine have an image under a name, as a build leaves it."""
        with (self.folder / "events").open("a") as events:
            events.write(f"keep {name} {image}\n")

    def hanging(self, seconds: float = 30) -> int:
        """Wait for a build in the mode ``hangs``; return its process id."""
        told = self.folder / "hanging"
        end = time.monotonic() + seconds
        while not (told.exists() and told.read_text().endswith("\n")):
            assert time.monotonic() < end, "the build did not start"
            time.sleep(0.02)
        return int(told.read_text())


@dataclass
class Images:
    """An engine's images: which it has, and where tags point.

    Args:
        events: what builds and the client did to the engine by themselves.
        passing: the names of builds that are not tagged yet.
        labels: cell and lock of each digest. failing: what a load raises.
    """

    events: Path
    loaded: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    loads: int = 0
    failing: BaseException | None = None
    _passing: dict[str, str] = field(default_factory=dict)
    _seen: int = 0

    @property
    def passing(self) -> dict[str, str]:
        self._catch_up()
        return self._passing

    def _catch_up(self) -> None:
        lines = self.events.read_text().splitlines()
        for what, name, *more in (line.split() for line in lines[self._seen :]):
            if what == "keep":
                self._passing[name] = more[0]
                self.loaded.add(more[0])
            elif what == "labels":
                self.labels[name] = {"dev.tfenv.cell": more[0], "dev.tfenv.lock": more[1]}
            else:
                self._forget(name)
        self._seen = len(lines)

    def _forget(self, name: str) -> None:
        """Remove a name, and with its last name the image."""
        held = self._passing.pop(name, None) or self.tags.pop(name, None)
        if held and held not in (*self._passing.values(), *self.tags.values()):
            self.loaded.discard(held)

    def inspect(self, name: str) -> str | None:
        self._catch_up()
        return name if name in self.loaded else self.tags.get(name) or self._passing.get(name)

    def image(self, name: str) -> dict[str, Any] | None:
        known = self.inspect(name)
        return {"Id": known, "Config": {"Labels": self.labels.get(known)}} if known else None

    def load(self, archive: Path) -> str:
        if self.failing is not None:
            raise self.failing
        self.loads += 1
        digest = oci.describe(archive).manifest_digest
        self.loaded.add(digest)
        return digest

    def tag(self, image: str, names: Sequence[str]) -> None:
        assert self.inspect(image) in self.loaded, "tagged before it was there"
        self.tags.update(dict.fromkeys(names, image))

    def remove(self, name: str) -> bool:
        known = name in {**self.passing, **self.tags}
        if known:
            with self.events.open("a") as events:
                events.write(f"rm {name}\n")
            self._catch_up()
        return known

    def container(self, spec: object) -> Any:
        raise AssertionError("no container is run here")

    @contextmanager
    def connect(self, env: Mapping[str, str] = os.environ) -> Iterator[Images]:
        yield self


@dataclass
class Place:
    """All that a build touches."""

    root: Path
    workspace: Workspace
    store: Store
    docker: Docker
    images: Images
    env: Mapping[str, str]

    @property
    def cell(self) -> Cell:
        return self.workspace.matrix.cells[0]

    @property
    def lock(self) -> Lock:
        return self.workspace.lock(self.cell)

    @property
    def host(self) -> Host:
        return Host(self.store, Console(self.env), self.env)

    @property
    def inputs(self) -> Inputs:
        """What the committed lock gives."""
        return pipeline.committed(self.workspace, self.cell)

    def leftovers(self) -> list[str]:
        """What is in the store beside blobs, records, history, logs, locks of images and kept results."""
        known = {"blobs", "builds", "history", "logs", "lock", "locks", "memo", "CACHEDIR.TAG"}
        paths = (path.relative_to(self.store.root) for path in self.store.root.rglob("*") if path.is_file())
        return sorted(str(path) for path in paths if path.parts[0] not in known)


def place(root: Path, monkeypatch: Any, text: str = matrices.TEXT) -> Place:
    """A workspace, a filled store and an engine; this process's environment and folder are of them."""
    made = workspace(root / "team", text)
    store = Store(root / "store", say=lambda _: None)
    docker, images = Docker(root / "bin"), Images(root / "bin" / "events")
    for name in ("NO_COLOR", "TFENV_MATRIX", "FAKE_BUILD", "FAKE_BUILDER", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TFENV_CACHE", str(store.root))
    monkeypatch.setenv("TFENV_DOCKER", str(docker.path))
    monkeypatch.setattr("tfenv.container.connect", images.connect)
    monkeypatch.setattr("tfenv.fetch.fetch", no_network)
    monkeypatch.setattr("tfenv.build.check_all", lambda needs: None)
    monkeypatch.chdir(made.start)
    found = Place(root, made, store, docker, images, os.environ)
    for cell in made.matrix.cells:
        fill(store, made.lock(cell))
    return found


TWO_BASES = matrices.TEXT.replace("bases: [debian12]", "bases: [debian12, debian13]").replace(
    "cuda_sets:\n",
    """\
  debian13:
    kind: debian
    suite: trixie
    pythons: {"3.11": [python3.11]}
    epoch: 2025-08-09T00:00:00Z
    packages: [apt]
cuda_sets:
""",
)


def no_network(*args: object, **more: object) -> None:
    """Stands for a fetch where no server answers."""
    raise NotReadyError("no server answers", remedy="connect this machine")
