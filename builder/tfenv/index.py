"""The user's own package index settings: found in pip's and uv's usual places, handed on as found.

uv reads uv.toml itself; what is collected here are pip's files and variables, which uv ignores.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import requests

ReadFile = Callable[[str], "str | None"]

# The sections that pip reads for `install` and `download`, the later one wins.
_SECTIONS = ("global", "install", "download")
# pip (through requests) reads the first two, OpenSSL and uv the last.
_UV_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL")
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
# What uv may be told of: how to reach an index, and whether. Its other variables say what to choose, and
# that is the matrix's business: a lock must not depend on who makes it.
_UV_ALLOWED = re.compile(
    r"UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|NO_INDEX|INDEX_STRATEGY|FIND_LINKS"
    r"|INDEX_\w+_(?:USERNAME|PASSWORD)|KEYRING_PROVIDER|CREDENTIALS_DIR|(?:S3|GCS|AZURE)_ENDPOINT_URL"
    r"|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|REQUEST_TIMEOUT|HTTP_CONNECT_TIMEOUT|HTTP_RETRIES"
    r"|CONCURRENT_DOWNLOADS|CACHE_DIR|NO_CACHE|OFFLINE|CONFIG_FILE|NO_CONFIG)"
)
# Of the rest of the environment, what would make uv look at another Python than the one it is given.
_OF_PYTHON = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME")
_LISTS = ("extra-index-url", "find-links", "trusted-host")
_KEYS = (*_LISTS, "index-url", "cert", "client-cert", "proxy", "no-index", "timeout")


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """Where wheels come from on this host, and how it is reached. May hold secrets: never print it.

    Args:
        cert: file with the certificate authorities to trust.
        client_cert: file with a client certificate and its key.
        timeout: seconds.
        uv: the UV_* variables that the user set and that say how an index is reached; they win over
            pip's settings.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    no_index: bool = False
    timeout: float = 30.0
    uv: Mapping[str, str] = field(default_factory=dict, repr=False)

    def uv_env(self) -> dict[str, str]:
        """What to add to the environment of uv so that it looks where pip would."""
        found = {
            "UV_DEFAULT_INDEX": self.index_url,
            "UV_INDEX": " ".join(self.extra_index_urls),
            # pip knows no order among indexes: the best version of all of them is taken.
            "UV_INDEX_STRATEGY": "unsafe-best-match" if self.extra_index_urls else None,
            "UV_FIND_LINKS": ",".join(self.find_links),
            "UV_INSECURE_HOST": " ".join(self.trusted_hosts),
            "UV_HTTP_TIMEOUT": f"{self.timeout:.0f}" if self.timeout > 30 else None,
            "SSL_CERT_FILE": self.cert,
            "SSL_CLIENT_CERT": self.client_cert,
            "HTTP_PROXY": self.proxy,
            "HTTPS_PROXY": self.proxy,
            "ALL_PROXY": self.proxy,
        }
        taken = set(self.uv)
        if taken & {"UV_DEFAULT_INDEX", "UV_INDEX_URL"}:
            taken |= {"UV_DEFAULT_INDEX", "UV_INDEX_URL"}
        if taken & {"UV_INDEX", "UV_EXTRA_INDEX_URL"}:
            # The user gave uv its own indexes: then uv's own rule for their order holds too.
            taken |= {"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY"}
        return {key: value for key, value in found.items() if value and key not in taken}

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The whole environment for uv: ``env`` with these settings instead of its own UV_*.

        Variables of other programs stay: proxies, authorities, and whatever a keyring's helper reads.
        """
        others = {k: v for k, v in env.items() if not k.startswith("UV_") and k not in _OF_PYTHON}
        return {**others, **self.uv, **self.uv_env()}

    def alone(self) -> tuple[IndexSettings, ...]:
        """These settings with one index at a time, the default one first.

        uv takes a version from one index only, so a wheel can be hidden by another index that
        has other wheels of the same version (pip would see both).
        """
        if self.no_index:
            return ()
        default = self.uv.get("UV_DEFAULT_INDEX") or self.uv.get("UV_INDEX_URL") or self.index_url
        more = f"{self.uv.get('UV_INDEX', '')} {self.uv.get('UV_EXTRA_INDEX_URL', '')}".split()
        rest = {key: value for key, value in self.uv.items() if key not in _UV_INDEXES}
        return tuple(
            replace(self, index_url=url, extra_index_urls=(), uv=rest)
            for url in (default, *(more or self.extra_index_urls))
        )

    def uv_args(self) -> tuple[str, ...]:
        """Options of uv for which there is no variable."""
        return ("--no-index",) if self.no_index else ()

    def local_folders(self) -> tuple[Path, ...]:
        """The find-links that are folders of this host."""
        user = re.split(r"[,\s]+", self.uv.get("UV_FIND_LINKS", ""))
        paths = []
        for link in (*self.find_links, *filter(None, user)):
            parts = urlsplit(link)
            if parts.scheme in ("", "file"):
                paths.append(Path(unquote(parts.path)).expanduser())
        return tuple(dict.fromkeys(paths))

    def credentials(self) -> dict[str, tuple[str, str]]:
        """User and password by host[:port], from the URLs of the indexes."""
        urls = [self.index_url or "", *self.extra_index_urls, *self.find_links]
        for key in _UV_INDEXES:
            # An entry may be named: `internal=https://...`.
            urls += [re.sub(r"^[\w.-]+=", "", url) for url in self.uv.get(key, "").split()]
        found: dict[str, tuple[str, str]] = {}
        for url in urls:
            parts = urlsplit(url)
            if parts.username is not None:
                host = parts.netloc.rpartition("@")[2].lower()
                found[host] = (unquote(parts.username), unquote(parts.password or ""))
        return found

    def requests_session(self) -> requests.Session:
        """A session that reaches these indexes: CA file, proxy, client certificate, passwords."""
        from tfenv.session import IndexSession

        insecure = (*self.trusted_hosts, *self.uv.get("UV_INSECURE_HOST", "").split())
        return IndexSession(
            verify=self.cert,
            client_cert=self.client_cert,
            proxies={"http": self.proxy, "https": self.proxy} if self.proxy else None,
            insecure_hosts=insecure,
            credentials=self.credentials(),
        )


def discover(env: Mapping[str, str] | None = None, read_file: ReadFile | None = None) -> IndexSettings:
    """Read pip's files and variables and uv's variables, in pip's own order of precedence.

    Args:
        env: the environment (this process's by default).
        read_file: gives a file's text, or None where it is not there.
    """
    env = os.environ if env is None else env
    read = read_file or _read_text
    merged: dict[str, str] = {}
    for path in _config_files(env, read):
        merged.update(_parse(read(path) or ""))
    for key in _KEYS:
        value = env.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            merged[key] = value
    lists = {key: tuple(merged.get(key, "").split()) for key in _LISTS}
    return IndexSettings(
        index_url=merged.get("index-url") or None,
        extra_index_urls=lists["extra-index-url"],
        find_links=lists["find-links"],
        trusted_hosts=lists["trusted-host"],
        cert=merged.get("cert") or next((env[v] for v in CA_VARIABLES if env.get(v)), None),
        client_cert=merged.get("client-cert") or None,
        proxy=_with_scheme(merged.get("proxy", "")) or None,
        no_index=merged.get("no-index", "").strip().lower() in ("1", "true", "yes", "on"),
        timeout=_seconds(merged.get("timeout", "")),
        uv={key: value for key, value in env.items() if value and _UV_ALLOWED.fullmatch(key)},
    )


def redact(text: str) -> str:
    """The text with user names and passwords in its URLs replaced."""
    return re.sub(r"(://)[^/@\s'\"]+@", r"\1***@", text)


def _config_files(env: Mapping[str, str], read: ReadFile) -> list[str]:
    """pip's configuration files, the weakest first."""
    explicit = env.get("PIP_CONFIG_FILE", "")
    if explicit == os.devnull:  # pip's own way to say "no files"
        return []
    home = env.get("HOME") or str(Path.home())
    dirs = [d for d in env.get("XDG_CONFIG_DIRS", "").split(":") if d] or ["/etc/xdg"]
    files = [f"{d}/pip/pip.conf" for d in dirs] + ["/etc/pip.conf"]
    if not explicit or read(explicit) is None:  # an explicit file replaces the user's own
        config = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
        files += [f"{home}/.pip/pip.conf", f"{config}/pip/pip.conf"]
    if env.get("VIRTUAL_ENV"):
        files.append(f"{env['VIRTUAL_ENV']}/pip.conf")
    return [*files, explicit] if explicit else files


def _parse(text: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}  # pip itself says what is wrong with it; here it only means "no settings"
    found: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            found.update({k.replace("_", "-"): v for k, v in parser.items(section)})
    return {key: value for key, value in found.items() if key in _KEYS}


def _read_text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return None


def _with_scheme(proxy: str) -> str:
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _seconds(text: str) -> float:
    try:
        return max(1.0, float(text))
    except ValueError:
        return 30.0
