"""Snapshots in a registry: pushed and pulled by the OCI distribution protocol, blobs that are there once.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import requests

from tfenv.errors import IntegrityError, NotReadyError, UsageError

from .archive import Archived
from .check import Checked, Problem, named
from .choosing import InRegistry
from .descriptors import Blob, Manifest, parse_manifest
from .format import CELL, INDEX, MANIFEST, REF
from .layout import Layout
from .writing import writing

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.store import Store

_CHUNK = 1 << 20
_MANIFEST_MAX = 16 << 20
_SECONDS = (10, 300)  # to connect, and between two bytes
_ACCEPT = f"{MANIFEST}, {INDEX}"


def between(store: Store) -> Path:
    """The folder in the store in which snapshots lie on their way to and from registries."""
    return store.root / "snapshots"


class Repository:
    """One repository of a registry."""

    def __init__(self, place: InRegistry, env: Mapping[str, str]) -> None:
        self.place = place
        self._session = requests.Session()
        name = place.host.partition(":")[0]
        local = name == "localhost" or name.startswith("127.")
        if local:  # never through a proxy
            self._session.trust_env = False
        self._base = f"{'http' if local else 'https'}://{place.host}/v2/{place.path}/"
        self._login = login(place.host, env)
        self._token = ""

    def _ask(self, method: str, url: str, *, ok: tuple[int, ...], **more: Any) -> requests.Response:
        """One request, with the user's login where the registry asks for one."""
        for attempt in (1, 2):
            headers = {**more.get("headers", {}), **self._authorization(url)}
            try:
                answer = self._session.request(method, url, **{**more, "headers": headers}, timeout=_SECONDS)
            except requests.RequestException as error:
                raise NotReadyError(
                    f"{self.place.host} does not answer: {error}", remedy="check the network and the name"
                ) from None
            if answer.status_code == 401 and attempt == 1 and self._may_send(more):
                self._authorize(answer)
                continue
            break
        if answer.status_code not in ok:
            raise self._refused(answer, method)
        return answer

    @staticmethod
    def _may_send(more: Mapping[str, Any]) -> bool:
        return not hasattr(more.get("data"), "read") and not isinstance(more.get("data"), Iterator)

    def _authorization(self, url: str) -> dict[str, str]:
        # An upload may be told to go to another host, which must not learn the token.
        same = urlsplit(url).netloc == urlsplit(self._base).netloc
        return {"Authorization": self._token} if self._token and same else {}

    def _authorize(self, answer: requests.Response) -> None:
        asked = answer.headers.get("WWW-Authenticate", "")
        if asked.lower().startswith("basic") and self._login:
            code = base64.b64encode(":".join(self._login).encode()).decode()
            self._token = f"Basic {code}"
        elif asked.lower().startswith("bearer"):
            told = dict(re.findall(r'(\w+)="([^"]*)"', asked))
            params = {key: told[key] for key in ("service", "scope") if key in told}
            try:
                got = self._session.get(told["realm"], params=params, auth=self._login, timeout=_SECONDS)
                value = got.json()
                self._token = f"Bearer {value.get('token') or value['access_token']}"
            except (requests.RequestException, ValueError, KeyError, AttributeError):
                return

    def _refused(self, answer: requests.Response, method: str) -> NotReadyError | UsageError:
        if answer.status_code == 404 and method in ("GET", "HEAD"):
            return UsageError(f"{self.place} is not there", remedy="check the name and the tag")
        said = answer.text.strip().splitlines()[:1]
        return NotReadyError(
            f"{self.place.host} refuses ({answer.status_code}): {said[0][:200] if said else answer.reason}",
            remedy=f"log in: docker login {self.place.host}"
            if answer.status_code in (401, 403)
            else "try again, or ask whoever runs the registry",
        )

    def has(self, blob: Blob) -> bool:
        """Is the blob there?"""
        answer = self._ask("HEAD", urljoin(self._base, f"blobs/{blob.digest}"), ok=(200, 404))
        return answer.status_code == 200

    def push(self, blob: Blob, layout: Layout) -> None:
        """Send a blob in one piece."""
        started = self._ask("POST", urljoin(self._base, "blobs/uploads/"), ok=(202,))
        at = urljoin(started.url, started.headers.get("Location", ""))
        at += ("&" if "?" in at else "?") + f"digest={blob.digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)}
        with layout.open(blob) as file:
            # requests sends an empty file in chunks, which registries refuse.
            data = file if blob.size else b""
            self._ask("PUT", at, data=data, headers=headers, ok=(201,))

    def push_manifest(self, data: bytes, reference: str) -> None:
        """Send a manifest under a tag; what it names has to be there."""
        url = urljoin(self._base, f"manifests/{reference}")
        self._ask("PUT", url, data=data, headers={"Content-Type": MANIFEST}, ok=(201,))

    def manifest(self) -> tuple[Blob, bytes]:
        """The manifest that the place names, by digest or tag.

        Raises:
            UsageError: there is none. IntegrityError: it is another than its digest says.
        """
        wanted = self.place.digest or self.place.tag
        if not wanted:
            raise UsageError(f"{self.place} names no snapshot", remedy=f"add its tag: {self.place}:CELL")
        url = urljoin(self._base, f"manifests/{wanted}")
        with self._ask("GET", url, headers={"Accept": _ACCEPT}, ok=(200,), stream=True) as answer:
            data = b"".join(_upto(answer, _MANIFEST_MAX))
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if self.place.digest and digest != self.place.digest:
            raise IntegrityError(f"{self.place} has another digest: {digest}", remedy="do not use it")
        return Blob(digest=digest, size=len(data), media_type=MANIFEST), data

    def read(self, blob: Blob) -> Iterator[bytes]:
        """The bytes of a blob as they come, never more than it has."""
        url = urljoin(self._base, f"blobs/{blob.digest}")
        with self._ask("GET", url, ok=(200,), stream=True) as answer:
            yield from _upto(answer, blob.size)


def _upto(answer: requests.Response, limit: int) -> Iterator[bytes]:
    left = limit
    try:
        for chunk in answer.iter_content(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise IntegrityError(f"{answer.url} sends more than {limit} bytes", remedy="do not use it")
            yield chunk
    except requests.RequestException as error:
        raise NotReadyError(f"{answer.url} broke off: {error}", remedy="type the command again") from None


def push(made: Archived, place: InRegistry, host: Host) -> InRegistry:
    """Send a snapshot of a folder: what the registry lacks, and the manifest last."""
    layout = Layout(made.layout)
    blob = next(b for b in layout.snapshots() if b.digest == made.digest)
    manifest = layout.manifest(blob)
    place = replace(place, tag=place.tag or made.name)
    repository = Repository(place, host.env)
    lacking = [b for b in _once(manifest) if not repository.has(b)]
    host.console.note(f"{place}: {len(lacking)} files to send")
    for one in lacking:
        repository.push(one, layout)
    repository.push_manifest(manifest.data, place.tag)
    return place


def pull(place: InRegistry, host: Host) -> tuple[Layout, Blob]:
    """Bring a snapshot into the store's own folder of snapshots; what is there is not fetched again."""
    repository = Repository(place, host.env)
    blob, data = repository.manifest()
    manifest = parse_manifest(data, blob, where=str(place))
    layout = Layout(between(host.store), say=host.console.note)
    with writing(layout) as writer:
        for one in _once(manifest):
            writer.put(repository.read(one), one.digest[7:], name=one.title or one.digest)
        writer.put_bytes(data)
        notes = {**json.loads(data).get("annotations", {})}
        entry = replace(blob, annotations={str(k): str(v) for k, v in notes.items() if k != REF})
        others = [one for one in writer.entries() if one.get("digest") != blob.digest]
        writer.publish([*others, entry.plain()])
    return layout, blob


def check(place: InRegistry, env: Mapping[str, str]) -> Checked:
    """Fetch and rehash every blob of a snapshot, and keep none."""
    repository = Repository(place, env)
    blob, data = repository.manifest()
    manifest = parse_manifest(data, blob, where=str(place))
    cell = json.loads(data).get("annotations", {}).get(CELL, str(place))
    problems = []
    blobs = _once(manifest)
    for one in blobs:
        hashed, size = hashlib.sha256(), 0
        try:
            for chunk in repository.read(one):
                hashed.update(chunk)
                size += len(chunk)
        except UsageError:
            problems.append(_problem(cell, one, "missing", 0))
            continue
        except IntegrityError:
            size = one.size + 1
        if size < one.size:
            problems.append(_problem(cell, one, "truncated", size))
        elif f"sha256:{hashed.hexdigest()}" != one.digest:
            problems.append(_problem(cell, one, "changed", size))
    return Checked(
        snapshots=(cell,),
        blobs=len(blobs) + 1,
        bytes=sum(one.size for one in blobs) + blob.size,
        problems=tuple(problems),
        unused=(),
    )


def _problem(cell: str, blob: Blob, state: Any, found: int) -> Problem:
    title = blob.title or "its document"
    return Problem(snapshot=cell, title=title, digest=blob.digest, state=state, size=blob.size, found=found)


def _once(manifest: Manifest) -> list[Blob]:
    return list({blob.digest: blob for blob in named(manifest)}.values())


def login(host: str, env: Mapping[str, str]) -> tuple[str, str] | None:
    """The user's name and password for a registry, as `docker login` keeps them in a file.

    Those that a credential helper keeps are not read.
    """
    folder = Path(env.get("DOCKER_CONFIG") or Path(env.get("HOME", "")) / ".docker")
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        auths = json.loads((folder / "config.json").read_text("utf-8"))["auths"]
        code = base64.b64decode(auths[host]["auth"]).decode()
        user, _, password = code.partition(":")
        return user, password
    return None
