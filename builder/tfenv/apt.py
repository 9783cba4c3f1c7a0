"""The host's apt, looking only at a scratch folder; of the host's own settings, those that reach a server."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfenv.errors import NotReadyError, TfenvError, UsageError

Run = Callable[..., "subprocess.CompletedProcess[str]"]

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


class ScratchApt:
    """Calls apt's commands in the empty folder ``root``: its own sources, state and empty status.

    Args:
        sources: text of a sources.list.
    """

    def __init__(self, root: Path, sources: str, env: Mapping[str, str], run: Run) -> None:
        self._run = run
        for folder in ("lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True)
        (root / "status").write_text("")
        (root / "sources.list").write_text(sources)
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
        """Its standard output. Raises NotReadyError, UsageError or TfenvError with apt's own reason."""
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


def apt_proxies(env: Mapping[str, str] | None = None, run: Run = subprocess.run) -> dict[str, str]:
    """The proxies that the host's apt uses, by scheme; empty where it names none."""
    settings = _host_settings(os.environ if env is None else env, run)
    found = re.findall(r'^Acquire::(https?)::Proxy "([^"]+)";', settings, re.IGNORECASE | re.M)
    return {scheme.lower(): url for scheme, url in found if url != "DIRECT"}


def _host_settings(env: Mapping[str, str], run: Run) -> str:
    try:
        done = _call(run, ["apt-config", "dump"], {**env, "LC_ALL": "C.UTF-8"})
    except NotReadyError:
        return ""
    lines = [line for line in done.stdout.splitlines() if _HOST_SETTINGS.match(line)]
    return "".join(f"{line}\n" for line in lines)
