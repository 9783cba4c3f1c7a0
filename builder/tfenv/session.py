"""A requests session that obeys the user's index settings (imported lazily: requests is slow)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import requests


class IndexSession(requests.Session):
    """CA file, client certificate, proxy and passwords per host.

    Where nothing was set, requests' own habits hold: *_proxy variables, REQUESTS_CA_BUNDLE, netrc.

    Args:
        verify: file or folder of certificate authorities, or None.
        proxies: proxy URL by scheme (``http``, ``https``).
        insecure_hosts: ``host`` or ``host:port`` whose certificates the user trusts unchecked.
        credentials: user and password by ``host[:port]``.
    """

    def __init__(
        self,
        *,
        verify: str | None = None,
        client_cert: str | None = None,
        proxies: Mapping[str, str] | None = None,
        insecure_hosts: Sequence[str] = (),
        credentials: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self._ca = verify
        self._own_proxies = dict(proxies or {})
        self._insecure = frozenset(host.lower() for host in insecure_hosts)
        self._credentials = dict(credentials or {})
        if client_cert:
            self.cert = client_cert

    def auth_for(self, url: str) -> tuple[str, str] | None:
        """User and password for this URL's host; None leaves it to netrc."""
        return self._credentials.get(urlsplit(url).netloc.rpartition("@")[2].lower())

    def request(self, method: str | bytes, url: str | bytes, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        """As requests does, with this host's password."""
        if kwargs.get("auth") is None:
            kwargs["auth"] = self.auth_for(url if isinstance(url, str) else url.decode())
        return super().request(method, url, **kwargs)

    def merge_environment_settings(  # type: ignore[override]
        self, url: str, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Let what the user set for pip win over the environment, which requests would prefer."""
        merged = super().merge_environment_settings(url, proxies, stream, verify, cert)
        if self._ca:
            merged["verify"] = self._ca
        if self._own_proxies:
            merged["proxies"] = self._own_proxies
        parts = urlsplit(url)
        if {parts.hostname or "", parts.netloc.rpartition("@")[2].lower()} & self._insecure:
            merged["verify"] = False
        return merged
