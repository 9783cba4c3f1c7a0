"""Ways in which two runs of one command differ, on one machine or two: none of them may change an image."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Read by the interpreter before anything else; the engine keeps the machine's clock.
_CLOCK = """\
import os, time
_shift = float(os.environ["TFENV_TEST_CLOCK"])
_time, _local, _gm, _format = time.time, time.localtime, time.gmtime, time.strftime
time.time = lambda: _time() + _shift
time.localtime = lambda at=None: _local(time.time() if at is None else at)
time.gmtime = lambda at=None: _gm(time.time() if at is None else at)
time.strftime = lambda form, at=None: _format(form, time.localtime() if at is None else at)
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to run a command.

    Args:
        clock: seconds by which the command's clock is ahead; zone: TZ; user: number, 0 for root.
        folder: working folder, relative to a folder of this run's own. env: more variables.
    """

    name: str
    clock: float = 0
    zone: str = "UTC"
    locale: str = "C.UTF-8"
    umask: int = 0o022
    user: int = 0
    folder: str = "."
    seed: str = "0"
    env: Mapping[str, str] = field(default_factory=dict)


YEAR = 365 * 86400.0
WAYS = (
    Way(name="plain"),
    Way(name="clock +7 years", clock=7 * YEAR),
    Way(name="clock -20 years", clock=-20 * YEAR),
    Way(name="time zone", zone="Pacific/Kiritimati"),
    Way(name="locale", locale="tr_TR.UTF-8", env={"LANGUAGE": "tr", "LANG": "tr_TR.UTF-8"}),
    Way(name="umask 077", umask=0o077),
    Way(name="umask 000", umask=0),
    Way(name="another user", user=65534),
    Way(name="working folder", folder="ein Ordner, mit Ü/und tiefer"),
    Way(
        name="all of it",
        clock=3 * YEAR,
        zone="America/St_Johns",
        locale="POSIX",
        umask=0o027,
        user=12345,
        folder="x",
        seed="4242",
        env={"SOURCE_DATE_EPOCH": "1", "DOCKER_DEFAULT_PLATFORM": "linux/arm64", "BUILDKIT_PROGRESS": "tty"},
    ),
)


def command(
    way: Way, argv: Sequence[str], root: Path, *, network: bool
) -> tuple[list[str], dict[str, str], Path]:
    """The command line, environment and working folder that run ``argv`` in that way.

    Args:
        root: a new folder of this run's own: store, home and working folder. network: false runs it in an
            empty network namespace; the engine's socket is a file.
    """
    place, clock = root / "place" / way.folder, root / "clock"
    for folder in (place, clock, root / "home"):
        folder.mkdir(parents=True, exist_ok=True)
    (clock / "sitecustomize.py").write_text(_CLOCK)
    env = {
        **os.environ,
        "HOME": str(root / "home"),
        "TFENV_CACHE": str(root / "store"),
        "TZ": way.zone,
        "LC_ALL": way.locale,
        "PYTHONHASHSEED": way.seed,
        "PYTHONPATH": str(clock),
        "TFENV_TEST_CLOCK": str(way.clock),
        **way.env,
    }
    line = ["sh", "-c", f'umask {way.umask:03o}; exec "$@"', "sh", *argv]
    if way.user:
        for path in (root, *root.rglob("*")):
            os.chown(path, way.user, way.user)
        line = [*_as_user(way.user), *line]
    return (line if network else ["unshare", "--net", *line]), env, place


def _as_user(user: int) -> list[str]:
    """Another user, who may use the engine, and may read where this interpreter lies."""
    socket_file = Path("/var/run/docker.sock")
    groups = [f"--groups={socket_file.stat().st_gid}"] if socket_file.exists() else ["--clear-groups"]
    may = "dac_read_search"
    argv = ["setpriv", f"--reuid={user}", f"--regid={user}", *groups]
    return [*argv, f"--inh-caps=+{may}", f"--ambient-caps=+{may}"]


def possible() -> str:
    """Why not all ways can be run here; nothing where they can."""
    if os.geteuid():
        return "only root can become another user and cut the network"
    lacking = [name for name in ("unshare", "setpriv") if not shutil.which(name)]
    if lacking:
        return f"there is no {lacking[0]}"
    at = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    if not (Path(at).exists() and stat.S_ISSOCK(Path(at).stat().st_mode)):
        return f"the engine's socket {at} is not a file on {socket.gethostname()}"
    return ""
