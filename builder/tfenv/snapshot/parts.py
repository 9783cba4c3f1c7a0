"""What goes into a snapshot: each part one function in ``PARTS``, which names files and where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import digest, lockfile, oci, report
from tfenv.context import Staged
from tfenv.errors import IntegrityError

from . import tree

if TYPE_CHECKING:
    from tfenv.build import Built
    from tfenv.inputs import Inputs
    from tfenv.store import Store

_JSON = "application/json"
_BYTES = "application/octet-stream"
_MEDIA = {
    ".json": _JSON,
    ".whl": "application/zip",
    ".deb": "application/vnd.debian.binary-package",
    ".tar": "application/x-tar",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".xml": "application/xml",
    ".lock": "text/plain",
    ".sh": "text/x-shellscript",
    ".py": "text/x-python",
}
# The folders that a build reads, as ``tfenv.context.stage`` lays them out; ``team`` for environments only.
BUILD = ("context", "debs", "wheels", "interpreter", "team")


@dataclass(frozen=True)
class Item:
    """A file of a snapshot: its path there, and where its bytes are.

    Args:
        sha256: what they have to have, where that is known already.
    """

    title: str
    content: bytes | Path
    sha256: str = ""

    @property
    def media_type(self) -> str:
        """By the file's ending; a Dockerfile is plain text."""
        ending = Path(self.title).suffix
        return _MEDIA.get(ending, "text/plain" if self.title.endswith("Dockerfile") else _BYTES)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is archived.

    Args:
        staged: the build as BuildKit reads it; tree: the files of the image that it gave.
        reports: folder of verdicts; store: where the inputs are.
        bases: OCI layouts of base images, by folder in the bundle.
        recorded: text of images/CELL/digest.json, empty where there is none.
    """

    inputs: Inputs
    built: Built
    staged: Staged
    tree: tree.Tree
    reports: Path
    store: Store
    bases: tuple[tuple[str, Path], ...] = ()
    recorded: str = ""


def _lock(of: Subject) -> Iterator[Item]:
    from tfenv.team.inputs import TeamInputs
    from tfenv.team.lockfile import dump

    yield Item("lock.json", lockfile.dump_lock(of.inputs.lock).encode())
    if isinstance(of.inputs, TeamInputs):
        yield Item("team-lock.json", dump(of.inputs.team).encode())


def _build(of: Subject) -> Iterator[Item]:
    known = {w.filename: w.sha256 for w in of.inputs.lock.wheels}
    known |= {p.filename: p.sha256 for p in of.inputs.lock.debian}
    more = {name: Path(at) for name, at in of.inputs.contexts.items() if "://" not in at}
    for name, folder in {"context": of.staged.main, **of.staged.named, **more}.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                title = f"{name}/{path.relative_to(folder).as_posix()}"
                yield Item(title, path, known.get(path.name, ""))


def _bases(of: Subject) -> Iterator[Item]:
    for name, folder in of.bases:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.relative_to(folder).parts[0] in ("blobs", "index.json", "oci-layout"):
                title = f"{name}/{path.relative_to(folder).as_posix()}"
                yield Item(title, path, path.name if "blobs" in path.parts else "")


def _expected(of: Subject) -> Iterator[Item]:
    made = of.built.digest
    manifest, config = oci.documents(of.built.archive, made.manifest, made.config)
    yield Item("expected/manifest.json", manifest, made.manifest.removeprefix("sha256:"))
    yield Item("expected/config.json", config, made.config.removeprefix("sha256:"))
    yield Item("expected/tree.jsonl.zst", tree.dump(of.tree))


def _recorded(of: Subject) -> Iterator[Item]:
    yield Item("builds/archived.json", digest.dump(of.built.digest).encode())
    if of.recorded:
        yield Item("builds/recorded.json", of.recorded.encode())


def _reports(of: Subject) -> Iterator[Item]:
    """The verdicts of exactly this digest, on whatever hosts."""
    start = of.built.digest.manifest.removeprefix("sha256:")[:12]
    for folder in sorted(of.reports.glob(f"{start}-*")) if of.reports.is_dir() else ():
        try:
            found = report.read(folder)
        except IntegrityError:
            continue
        if found.digest == of.built.digest.manifest:
            for path in sorted(folder.iterdir()):
                if path.is_file() and not path.name.startswith("."):
                    yield Item(f"reports/{folder.name}/{path.name}", path.read_bytes())


def _sbom(of: Subject) -> Iterator[Item]:
    """What is in the image, and under which licences, as the inputs' own files tell."""
    from tfenv import sbom
    from tfenv.sbom.evidence import from_store

    bill = sbom.bill_of_lock(of.inputs.lock, from_store(of.store))
    for form, document in sbom.FORMATS.items():
        yield Item(f"sbom/{sbom.NAMES[form]}", sbom.dump(document(bill)).encode())


#: In the order in which they stand in the manifest.
PARTS: tuple[Callable[[Subject], Iterator[Item]], ...] = (
    _lock,
    _build,
    _bases,
    _expected,
    _recorded,
    _reports,
    _sbom,
)


def items(of: Subject) -> Iterator[Item]:
    """All files of a snapshot."""
    for part in PARTS:
        yield from part(of)
