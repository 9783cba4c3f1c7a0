"""The engine's images and their tags."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfenv import oci
from tfenv.engine import keeps_digests, old_store
from tfenv.errors import IntegrityError, TfenvError

from .errors import ContainerError, explain_api, explained

_CHUNK = 1 << 20  # bytes
# https://github.com/distribution/reference: a name, a tag, a digest; an id, whole or its beginning
_NAME = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.:-]*/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]+",
    re.ASCII,
)


def split_name(name: str) -> tuple[str, str]:
    """``registry:5000/tfenv:2.15`` is (``registry:5000/tfenv``, ``2.15``)."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


class Images:
    """The images of an engine, named by tag or by id."""

    def __init__(self, api: Any) -> None:
        self._api = api  # docker.APIClient, of which the published types know too little

    def inspect(self, name: str) -> str | None:
        """The id of the image ``name``, None if there is none.

        In the containerd store the id is the manifest's digest.
        """
        image = self.image(name)
        return str(image["Id"]) if image else None

    def image(self, name: str) -> dict[str, Any] | None:
        """All that the engine says of the image ``name``, None if there is none."""
        import docker.errors

        if not {"", ".", ".."}.isdisjoint(name.split("/")) or not _NAME.fullmatch(name):
            return None  # in a URL these would name something else than an image
        with explained(keep=(docker.errors.ImageNotFound,)):
            try:
                return dict(self._api.inspect_image(name))
            except docker.errors.ImageNotFound:
                return None

    def load(self, archive: Path) -> str:
        """Load an OCI archive, tag nothing, and return its digest, by which the engine knows it then.

        Raises:
            NotReadyError: the engine's store would give the image another digest, or has no room for it.
            IntegrityError: the archive is not usable, or the engine does not hold it after all.
        """
        digest = oci.describe(archive).manifest_digest
        with explained():
            info = self._api.info()
        if not keeps_digests(info):
            raise old_store(str(info.get("ServerVersion")))
        with archive.open("rb") as stream, self._patient(), explained():
            for line in self._api.load_image(iter(lambda: stream.read(_CHUNK), b"")):
                if "error" in line:
                    raise explain_api(str(line["error"]))
        if self.inspect(digest) != digest:
            raise IntegrityError(
                f"the engine did not keep the digest {digest} of {archive}",
                remedy="type the command again; if it stays so, see the engine's log: journalctl -u docker",
            )
        return digest

    @contextmanager
    def saved(self, image: str) -> Iterator[Iterator[bytes]]:
        """The image as `docker save` gives it, in pieces; nothing of it touches the disk."""
        with self._patient(), explained():
            response = self._api.get_image(image, chunk_size=_CHUNK)
            yield iter(response)

    @contextmanager
    def _patient(self) -> Iterator[None]:
        # The engine is silent while it unpacks some gigabytes: no time limit on that answer.
        api = self._api
        before, api.timeout = api.timeout, None
        try:
            yield
        finally:
            api.timeout = before

    def tag(self, image: str, names: Sequence[str]) -> None:
        """Point every one of ``names`` at ``image``, or none of them."""
        if self.inspect(image) is None:
            raise ContainerError(f"there is no image {image} to tag", remedy="run `tfenv build`")
        before = {name: self.inspect(name) for name in names}
        moved: list[str] = []
        try:
            for name in names:
                moved.append(name)
                self._tag(image, name)
        except BaseException:
            for name in moved:
                old = before[name]
                with contextlib.suppress(TfenvError):
                    self._tag(old, name) if old else self.remove(name)
            raise

    def _tag(self, image: str, name: str) -> None:
        repository, tag = split_name(name)
        with explained():
            self._api.tag(image, repository, tag)

    def remove(self, name: str) -> bool:
        """Remove a tag, or an image by its id; False if there is none."""
        import docker.errors

        with explained(keep=(docker.errors.ImageNotFound,)):
            try:
                self._api.remove_image(name)
            except docker.errors.ImageNotFound:
                return False
        return True
