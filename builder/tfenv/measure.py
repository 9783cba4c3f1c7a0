"""Size and hash of what lies at a URL, for indexes that do not tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tfenv.errors import NotReadyError
from tfenv.index import redact
from tfenv.transfer import CHUNK, TIMEOUT_SECONDS

if TYPE_CHECKING:
    import requests


def measure(url: str, session: requests.Session) -> tuple[int, str]:
    """Size in bytes and sha256 of what lies at ``url``: reads all of it, keeps nothing."""
    import hashlib

    digest, size = hashlib.sha256(), 0
    if urlsplit(url).scheme == "file":
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return size, digest.hexdigest()
    import requests

    try:
        with session.get(
            url, headers={"Accept-Encoding": "identity"}, stream=True, timeout=TIMEOUT_SECONDS
        ) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_content(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except requests.RequestException as error:
        raise NotReadyError(
            redact(f"cannot read {url}: {error}"),
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        ) from error
    return size, digest.hexdigest()


def length(url: str, session: requests.Session, *, what: str) -> int:
    """Size in bytes of what lies at ``url``, as its server tells; 0 where it has no such file.

    Args:
        what: whose file it is, for messages.

    Raises:
        NotReadyError: no answer, or one that does not tell.
    """
    if urlsplit(url).scheme == "file":
        file = Path(unquote(urlsplit(url).path))
        return file.stat().st_size if file.is_file() else 0
    import requests

    try:
        answer = session.head(
            url, headers={"Accept-Encoding": "identity"}, allow_redirects=True, timeout=TIMEOUT_SECONDS
        )
        if answer.status_code in (404, 410):
            return 0
        answer.raise_for_status()
        told = answer.headers.get("Content-Length", "")
        if not told.isdecimal():
            raise ValueError("it does not tell how big the file is")
        return int(told)
    except (requests.RequestException, ValueError) as error:
        host = urlsplit(url).hostname
        raise NotReadyError(
            redact(f"{what}: {host} does not give the file: {error}"),
            remedy="check the network and proxy, or name a mirror as uv does: UV_PYTHON_INSTALL_MIRROR=URL",
        ) from error
