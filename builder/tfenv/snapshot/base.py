"""The base image of a cell that starts from one: its blobs, so that a rebuild needs no registry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tfenv import oci
from tfenv.engine import Run
from tfenv.errors import IntegrityError, NotReadyError

from .format import Context

if TYPE_CHECKING:
    from tfenv.inputs import Inputs

_LAYOUT = re.compile(r"oci-layout://(?P<path>/.*)@(?P<digest>sha256:[0-9a-f]{64})")


@contextmanager
def bases(
    inputs: Inputs, run: Run, client: str, place: Path
) -> Iterator[tuple[tuple[Context, ...], tuple[tuple[str, Path], ...]]]:
    """The base images of a build: what the Dockerfile calls them, and folders with their OCI layouts.

    Args:
        run: runs the docker client; place: folder for temporary files.

    Raises:
        NotReadyError: the engine cannot give the image. IntegrityError: it gave another one.
    """
    found: list[tuple[Context, Path]] = []
    for name, at in sorted(inputs.contexts.items()):
        if match := _LAYOUT.fullmatch(at):
            context = Context(name=name, folder=f"base/{len(found)}", digest=match["digest"])
            found.append((context, Path(match["path"])))
    lock = inputs.lock
    with TemporaryDirectory(prefix="base-", dir=place) as folder:
        if lock.base_image and not found:
            name = f"{lock.base_image}@{lock.base_digest}"
            save(name, lock.base_digest, run, client, Path(folder))
            found.append((Context(name=name, folder="base/0", digest=lock.base_digest), Path(folder)))
        yield tuple(c for c, _ in found), tuple((c.folder, path) for c, path in found)


def save(image: str, digest: str, run: Run, client: str, folder: Path) -> None:
    """Have the engine write an image into ``folder`` as an OCI layout; it is pulled where it is not there.

    Raises:
        NotReadyError: it cannot be had. IntegrityError: the engine gave another digest.
    """
    archive = folder / "image.tar"
    if run([client, "image", "inspect", image]).returncode:
        pulled = run([client, "image", "pull", image])
        if pulled.returncode:
            raise NotReadyError(
                f"the base image {image} cannot be had: {_last(pulled.stderr)}",
                remedy="check the network and `docker login`, then type the command again",
            )
    saved = run([client, "image", "save", "--output", str(archive), image])
    if saved.returncode:
        raise NotReadyError(
            f"the engine does not give the image {image}: {_last(saved.stderr)}",
            remedy=f"try it by hand: docker image save {image}",
        )
    oci.unpack(archive, folder)
    archive.unlink()
    if not (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).is_file():
        raise IntegrityError(
            f"the engine has {image} under another digest than {digest}",
            remedy="it has to keep images in containerd's store: see `tfenv build`",
        )


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no answer"])[-1]
