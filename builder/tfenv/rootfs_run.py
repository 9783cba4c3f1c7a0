"""Run an unpacked image on a GPU host without Docker: chroot in a mount namespace, with the host's driver.

What runs is what the digest names; what Docker would add is added here: /proc, /sys, /dev, a /tmp of
its own, the driver's libraries, and the image's environment and nothing of the host's. As root the
process takes the image's user; without root it needs user namespaces and is root in its own. Not as
in Docker: the root file system can be written, and the network is the host's.

Only the standard library and tfenv's own code are used, so that ``python3 -m tfenv.rootfs_run
--rootfs DIR -- COMMAND`` runs where tfenv's dependencies are not installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tfenv.alone import run_alone
from tfenv.container.spec import Bind, Spec
from tfenv.errors import NotReadyError, UsageError
from tfenv.given_gpus import WORDS, parse, steering
from tfenv.processes import RunningProcess
from tfenv.unpacked import Unpacked, read_unpacked

DRIVER = "/usr/local/nvidia"  # where the driver's libraries are seen inside
_LIBRARIES = ("libcuda.so*", "libnvidia-*.so*", "libcudadebugger.so*", "libnvcuvid.so*")
_TOOLS = ("nvidia-smi",)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOSTS = Path("/etc/hosts")


@dataclass(frozen=True)
class Driver:
    """The host's driver: a folder with ``lib64``, or single files; empty for none."""

    folder: Path | None = None
    libraries: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()


def find_driver(root: Path = Path("/")) -> Driver:
    """The host's driver: NVIDIA's own folder if there is one, else the libraries beside libcuda.so.1."""
    own = root / "usr/local/nvidia"
    if (own / "lib64" / "libcuda.so.1").exists():
        return Driver(folder=own)
    folders = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib/wsl/lib", "usr/lib", "lib64")
    for folder in (root / name for name in folders):
        if (folder / "libcuda.so.1").exists():
            found = {path for pattern in _LIBRARIES for path in folder.glob(pattern)}
            tools = (root / "usr/bin" / name for name in _TOOLS)
            return Driver(
                libraries=tuple(sorted(found)), tools=tuple(tool for tool in tools if tool.exists())
            )
    return Driver()


def environment(image: Unpacked, spec: Spec, driver: Driver, host: Mapping[str, str]) -> dict[str, str]:
    """The environment inside: the image's, the spec's, and what steers NCCL on this host.

    NCCL's variables are kept since the host knows its fabric: some of its features can be unusable there.
    """
    env = {"PATH": _PATH, "HOME": "/", **image.env}
    env |= {name: value for name, value in host.items() if name.startswith("NCCL_")}
    env |= dict(spec.env)
    if driver.folder or driver.libraries:
        own = [part for part in env.get("LD_LIBRARY_PATH", "").split(":") if part]
        env["LD_LIBRARY_PATH"] = ":".join([*own, f"{DRIVER}/lib64", f"{DRIVER}/lib"])
        env["PATH"] = f"{env['PATH']}:{DRIVER}/bin"
    return env if "CUDA_VISIBLE_DEVICES" in spec.env else env | steering(spec.gpus)


def script(image: Unpacked, spec: Spec, driver: Driver, env: Mapping[str, str], *, root: bool) -> str:
    """The shell script that runs in the new namespaces: mounts, then the command.

    Args:
        root: whether we are root, and may take the image's user.
    """
    base = image.folder
    lines = ["set -e"]

    def run(*words: str, or_else: Sequence[str] = ()) -> None:
        other = f" || {shlex.join(or_else)}" if or_else else ""
        lines.append(shlex.join(words) + other)

    def at(inside: str) -> str:
        return str(base) + "/" + inside.strip("/")

    def bind(source: Path, inside: str, *, read_only: bool = True, folder: bool = True) -> None:
        target = at(inside)
        run("mkdir", "-p", target if folder else str(Path(target).parent))
        if not folder:
            lines.append(f"test -e {shlex.quote(target)} || : > {shlex.quote(target)}")
        run("mount", "--bind", str(source), target)
        if read_only:
            run("mount", "-o", "remount,bind,ro", target, or_else=("true",))

    for name in ("dev", "sys"):
        run("mkdir", "-p", at(name))
        run("mount", "--rbind", f"/{name}", at(name))
    run("mkdir", "-p", at("proc"))
    # A container may not mount a new /proc: then the host's.
    run("mount", "-t", "proc", "proc", at("proc"), or_else=("mount", "--rbind", "/proc", at("proc")))
    if spec.shm_size:
        run(
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"mode=1777,size={spec.shm_size}",
            "tmpfs",
            at("dev/shm"),
            or_else=("true",),
        )
    for inside, options in spec.tmpfs.items():
        run("mkdir", "-p", at(inside))
        run("mount", "-t", "tmpfs", "-o", options, "tmpfs", at(inside))
    if driver.folder:
        bind(driver.folder, DRIVER)
    elif driver.libraries:
        run("mkdir", "-p", at(DRIVER))
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", at(DRIVER))
        for library in driver.libraries:
            bind(library.resolve(), f"{DRIVER}/lib64/{library.name}", folder=False)
        for tool in driver.tools:
            bind(tool.resolve(), f"{DRIVER}/bin/{tool.name}", folder=False)
    # As Docker does, so that "localhost" has an address.
    if HOSTS.is_file():
        bind(HOSTS.resolve(), "/etc/hosts", folder=False)
    for one in spec.binds:
        source = one.source.resolve()
        bind(source, one.target, read_only=one.read_only, folder=source.is_dir())
    given = [f"{name}={value}" for name, value in env.items()]
    who = ["--userspec={}:{}".format(*image.owner)] if root else []
    command = [*spec.entrypoint, *spec.command]
    start = ["chroot", *who, str(base), "/usr/bin/env", "-i", "-C", image.workdir, *given, *command]
    if not (base / "usr/bin/env").exists():
        raise UsageError(f"{base} lacks /usr/bin/env", remedy="use an image with coreutils")
    # No exec: taking another user makes a process forget that it is to die with its parent.
    lines.append(shlex.join(start) + " || exit $?")
    return "\n".join(lines) + "\n"


def with_us() -> list[str]:
    """The start of the command line: what follows dies when we are killed, where this host can do that."""
    line = ["setpriv", "--pdeathsig", "KILL", "--"]
    try:  # one that is older than util-linux 2.33, or busybox's, cannot
        return (
            line if subprocess.run([*line, "true"], capture_output=True, check=False).returncode == 0 else []
        )
    except OSError:
        return []


def unshare(*, root: bool) -> list[str]:
    """The start of the command line: namespaces of its own, whose end ends every process in them."""
    line = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
    return line if root else [*line, "--user", "--map-root-user"]


@dataclass(frozen=True)
class Rootfs:
    """An unpacked image that runs as a container of an engine would.

    Args:
        keep: the host's environment, of which NCCL's variables are kept.
    """

    image: Unpacked
    driver: Driver = field(default_factory=find_driver)
    keep: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @contextmanager
    def container(self, spec: Spec) -> Iterator[RunningProcess]:
        """Start ``spec.entrypoint`` and ``spec.command`` in the image; ended whatever happens.

        Of the spec, ``image``, ``network``, ``read_only`` and ``user`` are not used.

        Raises:
            NotReadyError: the host lacks what it takes.
        """
        root = os.geteuid() == 0
        if lacking := [name for name in ("unshare", "chroot", "mount") if not shutil.which(name)]:
            raise NotReadyError(f"this host has no {lacking[0]}", remedy="install util-linux and coreutils")
        driver = self.driver if spec.gpus else Driver()
        env = environment(self.image, spec, driver, self.keep)
        text = script(self.image, spec, driver, env, root=root)
        process = subprocess.Popen(
            [*with_us(), *unshare(root=root), "sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        running = RunningProcess(process)
        try:
            yield running
        finally:
            running.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def main(argv: Sequence[str]) -> int:
    """``python3 -m tfenv.rootfs_run``: run one command in an unpacked image; its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tfenv.rootfs_run", description=__doc__)
    parser.add_argument("--rootfs", type=Path, required=True, help="folder with the image's files")
    parser.add_argument("--config", type=Path, help="its manifest and config; ROOTFS.json by default")
    parser.add_argument("--bind", action="append", default=[], metavar="FROM:TO", help="read-only")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--gpus", default="all", help=WORDS)
    parser.add_argument("--shm-size", default="2g")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(list(argv))
    binds = [one.rpartition(":") for one in given.bind]
    if wrong := [one for one in given.bind if not re.fullmatch(r".+:/.*[^/]", one)]:
        parser.error(f"--bind {wrong[0]}: as FROM:/TO")
    if wrong := [one for one in given.env if not re.match("[^=]+=", one)]:
        parser.error(f"--env {wrong[0]}: as NAME=VALUE")
    gpus = parse(given.gpus)
    if gpus is None:
        parser.error(f"--gpus {given.gpus}: as {WORDS}")
    spec = Spec(
        image="",
        command=tuple(given.command),
        binds=tuple(Bind(Path(source), target) for source, _, target in binds),
        env=dict(one.split("=", 1) for one in given.env),
        shm_size=given.shm_size,
        gpus=gpus != "none" and gpus,
    )
    with Rootfs(read_unpacked(given.rootfs, given.config)).container(spec) as running:
        for out, err in running.output():
            sys.stdout.buffer.write(out)
            sys.stdout.buffer.flush()
            sys.stderr.buffer.write(err)
            sys.stderr.buffer.flush()
        return running.wait().status


if __name__ == "__main__":
    run_alone(main, sys.argv[1:])
