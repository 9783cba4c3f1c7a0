"""Debian packages: resolve with the host's apt in a scratch root, and say where each .deb may lie."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.model import DebianPackage

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ReadFile = Callable[[str], "str | None"]
ListDir = Callable[[str], "list[str]"]
Archive = Literal["debian", "debian-security"]
Stanza = Mapping[str, str]

_KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
)
# Of the host's apt settings only those that say how to reach a server; no hooks, no pins.
_HOST_SETTINGS = re.compile(
    r"Acquire::(?:https?|ftp|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date)\b", re.IGNORECASE
)
_NETWORK_SIGNS = (
    "Could not resolve",
    "Temporary failure resolving",
    "Could not connect",
    "Connection failed",
    "Connection refused",
    "Connection timed out",
    "Network is unreachable",
)


@dataclass(frozen=True, kw_only=True)
class Mirrors:
    """Where this host gets Debian from. URLs without a trailing slash; may hold secrets.

    Args:
        snapshot: root of the distribution's snapshot service, or None where none is known.
        keyring: file that signs both archives, or None for the distribution's usual one.
    """

    debian: str
    security: str
    snapshot: str | None = None
    keyring: str | None = None

    def url(self, archive: Archive) -> str:
        """The root of that archive."""
        return self.debian if archive == "debian" else self.security


def find_mirrors(
    env: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
    list_dir: ListDir | None = None,
) -> Mirrors:
    """The mirrors of this host: its apt sources', or $TFENV_DEBIAN_MIRROR and its companions.

    Raises NotReadyError where the host names no Debian mirror.
    """
    env = os.environ if env is None else env
    read, entries = read_file or _read_text, list_dir or _list_dir
    found: dict[str, tuple[str, str | None]] = {}
    for source in _sources(read, entries):
        for uri in _expand(source.uri, read):
            name = urlsplit(uri).path.rstrip("/").rsplit("/", 1)[-1]
            if name in ("debian", "debian-security"):
                found.setdefault(name, (uri.rstrip("/"), source.signed_by))
    own, keyring = found.get("debian", ("", None))
    debian = env.get("TFENV_DEBIAN_MIRROR", "").rstrip("/") or own
    if not debian:
        raise NotReadyError(
            "this machine's apt sources name no Debian mirror",
            remedy="set TFENV_DEBIAN_MIRROR=<URL of a mirror, ending in /debian> (and, if its "
            "security archive is not beside it, TFENV_DEBIAN_SECURITY_MIRROR)",
        )
    security = env.get("TFENV_DEBIAN_SECURITY_MIRROR", "").rstrip("/")
    if not security and not env.get("TFENV_DEBIAN_MIRROR"):
        security = found.get("debian-security", ("", None))[0]
    return Mirrors(
        debian=debian,
        security=security or re.sub(r"/debian$", "", debian) + "/debian-security",
        snapshot=env.get("TFENV_DEBIAN_SNAPSHOT", "").rstrip("/") or _snapshot_of(debian),
        keyring=None if env.get("TFENV_DEBIAN_MIRROR") else keyring,
    )


def deb_urls(package: DebianPackage, mirrors: Mirrors, snapshot_at: str) -> tuple[str, ...]:
    """Where to look for that .deb: the mirror, then the snapshots around RFC 3339 ``snapshot_at``.

    The snapshot service answers with its last import before the time asked for, and a package
    that was new when it was locked is imported a little later: so the day after is asked too.
    """
    from datetime import datetime, timedelta, timezone

    path = package.path.replace("+", "%2b").replace("~", "%7e")
    urls = [f"{mirrors.url(package.archive)}/{path}"]
    if mirrors.snapshot:
        moment = datetime.fromisoformat(snapshot_at.replace("Z", "+00:00"))
        for days in (0, 1):
            at = (moment + timedelta(days=days)).astimezone(timezone.utc)
            urls.append(f"{mirrors.snapshot}/archive/{package.archive}/{at:%Y%m%dT%H%M%SZ}/{path}")
    return tuple(urls)


def resolve_debian(
    suite: str,
    packages: Sequence[str],
    env: Mapping[str, str] | None = None,
    run: Run = subprocess.run,
    *,
    mirrors: Mirrors | None = None,
) -> tuple[tuple[DebianPackage, ...], str]:
    """All Essential packages, ``packages`` and what they need, without recommends, for amd64.

    Args:
        suite: code name, e.g. ``bookworm``; its updates and security suites are read too.

    Returns them by name, with the mirror's versions, and the RFC 3339 time of the newest of the
    indexes read: the same state of the mirror gives the same answer whenever it is asked.
    Raises NotReadyError without apt, mirror or network, UsageError for a package that does not exist.
    """
    env = os.environ if env is None else env
    mirrors = mirrors or find_mirrors(env)
    keyring = mirrors.keyring or _keyring(Path.exists)
    with tempfile.TemporaryDirectory(prefix="tfenv-apt-") as folder:
        apt = _Apt(Path(folder), suite, mirrors, keyring, env, run)
        apt("apt-get", "-q", "update")
        wanted = apt("apt-get", "-qq", "--print-uris", "install", "?essential", *packages)
        uris = list(_print_uris(wanted))
        names = [f"{uri.name}={uri.version}" for uri in uris]
        shown = apt("apt-cache", "show", *names) if names else ""
        at = newest_date(file.read_text("utf-8") for file in sorted(Path(folder, "lists").glob("*Release")))
    return debian_packages(uris, list(parse_stanzas(shown)), mirrors), at


def newest_date(releases: Iterable[str]) -> str:
    """The latest ``Date`` of some Release (or InRelease) files, as RFC 3339 in UTC."""
    from datetime import timezone
    from email.utils import parsedate_to_datetime

    dates = [match[1] for text in releases if (match := re.search(r"^Date: *(.+)$", text, re.MULTILINE))]
    try:
        newest = max(parsedate_to_datetime(re.sub(r"\bUTC$", "+0000", date.strip())) for date in dates)
    except (TypeError, ValueError) as error:
        raise TfenvError(
            "the Debian mirror's Release files do not say when they were made",
            remedy="try another mirror: TFENV_DEBIAN_MIRROR=<URL of a mirror, ending in /debian>",
        ) from error
    return newest.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def debian_packages(
    uris: Iterable[_Uri], stanzas: Sequence[Stanza], mirrors: Mirrors
) -> tuple[DebianPackage, ...]:
    """Join what apt would fetch with what its index says of it."""
    known = {(s["Package"], s["Version"]): s for s in stanzas}
    chosen = {uri.name: (uri, known[uri.name, uri.version]) for uri in uris}
    essential = essential_closure([stanza for _, stanza in chosen.values()])
    locked = []
    for name in sorted(chosen):
        uri, stanza = chosen[name]
        locked.append(
            DebianPackage(
                name=name,
                version=stanza["Version"],
                architecture=stanza["Architecture"],
                archive=_archive_of(uri.url, mirrors),
                path=stanza["Filename"],
                size=int(stanza["Size"]),
                sha256=stanza["SHA256"],
                essential=name in essential,
            )
        )
    return tuple(locked)


def essential_closure(stanzas: Iterable[Stanza]) -> frozenset[str]:
    """The Essential packages among those chosen, and the chosen ones that they depend on.

    Of alternatives (``a | b``) the first that was chosen counts; versions were apt's business.
    """
    chosen = {stanza["Package"]: stanza for stanza in stanzas}
    providers: dict[str, list[str]] = {}
    for name in sorted(chosen):
        for virtual in _names(chosen[name].get("Provides", "")):
            providers.setdefault(virtual[0], []).append(name)
    closure: set[str] = set()
    todo = [name for name in sorted(chosen) if chosen[name].get("Essential") == "yes"]
    while todo:
        name = todo.pop()
        if name in closure:
            continue
        closure.add(name)
        for field in ("Pre-Depends", "Depends"):
            for alternatives in _names(chosen[name].get(field, "")):
                options = [[a] if a in chosen else providers.get(a, [])[:1] for a in alternatives]
                todo += next((option for option in options if option), [])
    return frozenset(closure)


def glibc_level(packages: Iterable[DebianPackage]) -> str:
    """uv's and pip's platform for wheels on that base, e.g. ``x86_64-manylinux_2_36``."""
    for package in packages:
        if package.name == "libc6":
            match = re.match(r"(?:\d+:)?2\.(\d+)", package.version)
            if match:
                return f"x86_64-manylinux_2_{match[1]}"
    raise TfenvError(
        "the Debian packages hold no libc6, so no wheel can be chosen for them",
        remedy="take the base's packages from a Debian mirror: tfenv lock CELL --upgrade debian",
    )


def apt_proxies(env: Mapping[str, str] | None = None, run: Run = subprocess.run) -> dict[str, str]:
    """The proxies that the host's apt uses, by scheme; empty where it names none."""
    settings = _host_settings(os.environ if env is None else env, run)
    found = re.findall(r'^Acquire::(https?)::Proxy "([^"]+)";', settings, re.IGNORECASE | re.M)
    return {scheme.lower(): url for scheme, url in found if url != "DIRECT"}


def parse_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Split the output of ``apt-cache show`` into packages."""
    for block in re.split(r"\n\s*\n", text.strip()):
        stanza: dict[str, str] = {}
        for line in block.splitlines():
            key, colon, value = line.partition(":")
            if colon and not line.startswith(" "):
                stanza[key] = value.strip()
        if "Package" in stanza:
            yield stanza


@dataclass(frozen=True)
class _Uri:
    url: str
    name: str
    version: str


@dataclass(frozen=True)
class _Source:
    uri: str
    signed_by: str | None


class _Apt:
    """The host's apt, looking only at a scratch folder: its own sources, state and empty status."""

    def __init__(
        self,
        root: Path,
        suite: str,
        mirrors: Mirrors,
        keyring: str,
        env: Mapping[str, str],
        run: Run,
    ) -> None:
        self._run = run
        for folder in ("lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True)
        (root / "status").write_text("")
        (root / "sources.list").write_text(
            "".join(
                f"deb [signed-by={keyring} arch=amd64] {url} {name} main\n"
                for url, name in (
                    (mirrors.debian, suite),
                    (mirrors.debian, f"{suite}-updates"),
                    (mirrors.security, f"{suite}-security"),
                )
            )
        )
        (root / "apt.conf").write_text(
            _host_settings(env, run) + f'Dir::Etc::main "/dev/null";\nDir::Etc::parts "/dev/null";\n'
            f'Dir::Etc::sourcelist "{root}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
            f'Dir::Etc::preferences "/dev/null";\nDir::Etc::preferencesparts "/dev/null";\n'
            f'Dir::State "{root}";\nDir::State::lists "{root}/lists";\n'
            f'Dir::State::status "{root}/status";\nDir::Cache "{root}/cache";\n'
            'APT::Architecture "amd64";\nAPT::Architectures { "amd64"; };\n'
            'APT::Install-Recommends "false";\nAPT::Install-Suggests "false";\n'
            'Acquire::Languages "none";\n'
            # The scratch folder belongs to the caller, so apt must not change to its own user.
            'APT::Sandbox::User "";\n'
        )
        self._env = {**env, "APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def __call__(self, *command: str) -> str:
        done = _call(self._run, command, self._env)
        if done.returncode or "Err:" in done.stdout:
            raise _failure(done.stdout + done.stderr)
        return str(done.stdout)


def _call(run: Run, command: Sequence[str], env: Mapping[str, str]) -> Any:
    try:
        return run(list(command), capture_output=True, text=True, check=False, env=dict(env))
    except FileNotFoundError as error:
        raise NotReadyError(
            f"{command[0]} is not on this machine: Debian packages are resolved with apt",
            remedy="lock on a Debian or Ubuntu machine (building from a lock needs no apt)",
        ) from error


def _failure(output: str) -> TfenvError:
    reason = "\n".join(line for line in output.splitlines() if line.startswith(("E:", "Err:", "W:", "  ")))
    reason = re.sub(r"(://)[^/@\s']+@", r"\1***@", reason) or output.strip()
    missing = re.findall(r"Unable to locate package (\S+)", reason)
    if missing:
        return UsageError(
            f"the Debian suite has no package {', '.join(missing)}",
            remedy="correct the base's packages in matrix.yaml",
        )
    if any(sign in reason for sign in _NETWORK_SIGNS):
        return NotReadyError(
            f"the Debian mirror cannot be reached:\n{reason}",
            remedy="check the network, and apt's proxy settings, which are used",
        )
    if "NO_PUBKEY" in reason or "keyring" in reason:
        return NotReadyError(
            f"the Debian mirror's signature cannot be checked:\n{reason}",
            remedy="apt-get install debian-archive-keyring (a recent one)",
        )
    return TfenvError(
        f"apt could not resolve the base's packages:\n{reason}",
        remedy="correct the base's packages in matrix.yaml, or try another mirror (TFENV_DEBIAN_MIRROR)",
    )


def _print_uris(text: str) -> Iterator[_Uri]:
    """Parse lines of ``apt-get --print-uris``: 'URL' name_version_arch.deb size hash."""
    for line in text.splitlines():
        match = re.match(r"'([^']+)' ([^_\s]+)_([^_\s]+)_[^_\s]+\.deb \d+", line)
        if match:
            yield _Uri(url=match[1], name=match[2], version=unquote(match[3]))


def _archive_of(url: str, mirrors: Mirrors) -> Archive:
    # The security mirror's URL may begin with the main one's.
    return "debian-security" if url.startswith(mirrors.security + "/") else "debian"


def _names(relation: str) -> Iterator[list[str]]:
    """``a (>= 1) | b:any, c`` -> [a, b], [c]."""
    for group in filter(None, (part.strip() for part in relation.split(","))):
        yield [re.split(r"[\s(\[:]", option.strip(), maxsplit=1)[0] for option in group.split("|")]


def _host_settings(env: Mapping[str, str], run: Run) -> str:
    try:
        done = _call(run, ["apt-config", "dump"], {**env, "LC_ALL": "C.UTF-8"})
    except NotReadyError:
        return ""
    lines = [line for line in done.stdout.splitlines() if _HOST_SETTINGS.match(line)]
    return "".join(f"{line}\n" for line in lines)


def _keyring(exists: Callable[[Path], bool]) -> str:
    for path in _KEYRINGS:
        if exists(Path(path)):
            return path
    raise NotReadyError(
        "the keys of the Debian archive are not on this machine",
        remedy="apt-get install debian-archive-keyring",
    )


def _snapshot_of(mirror: str) -> str | None:
    """The distribution's own mirror ``deb.<domain>`` has its history at ``snapshot.<domain>``."""
    parts = urlsplit(mirror)
    host = parts.hostname or ""
    return f"{parts.scheme}://snapshot.{host[4:]}" if host.startswith("deb.") else None


def _sources(read: ReadFile, list_dir: ListDir) -> Iterator[_Source]:
    folder = "/etc/apt/sources.list.d"
    files = ["/etc/apt/sources.list"]
    files += [f"{folder}/{name}" for name in list_dir(folder)]
    for file in files:
        text = read(file) or ""
        if file.endswith(".sources"):
            yield from _deb822_sources(text)
        elif file.endswith(".list"):
            yield from _one_line_sources(text)


def _one_line_sources(text: str) -> Iterator[_Source]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s", line)
        if match:
            signed = re.search(r"signed-by=(\S+)", match[1] or "")
            yield _Source(uri=match[2], signed_by=_file(signed[1] if signed else ""))


def _deb822_sources(text: str) -> Iterator[_Source]:
    without_comments = "\n".join(ln for ln in text.splitlines() if not ln.startswith("#"))
    for block in re.split(r"\n[ \t]*\n", without_comments):
        fields: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line[:1] in " \t":
                fields[key] = fields.get(key, "") + " " + line.strip()
            else:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        enabled = fields.get("enabled", "yes").lower() not in ("no", "false", "0")
        if enabled and "deb" in fields.get("types", "").split():
            for uri in fields.get("uris", "").split():
                yield _Source(uri=uri, signed_by=_file(fields.get("signed-by", "")))


def _file(signed_by: str) -> str | None:
    # Signed-By may also hold a fingerprint or a whole key.
    return signed_by if re.fullmatch(r"/\S+", signed_by) else None


def _expand(uri: str, read: ReadFile) -> Iterator[str]:
    """The mirrors behind ``mirror+file:`` (cloud images use it), or the URI itself."""
    if uri.startswith(("http://", "https://", "file:/")):
        yield uri
    elif uri.startswith("mirror+file:"):
        for line in (read(urlsplit(uri).path) or "").splitlines():
            if line.startswith(("http://", "https://")):
                yield line.split()[0]


def _read_text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return None


def _list_dir(path: str) -> list[str]:
    folder = Path(path)
    return sorted(f.name for f in folder.iterdir()) if folder.is_dir() else []
