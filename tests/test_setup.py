"""scripts/setup on machines of every kind: stand-ins for commands, the real apt with made-up mirrors."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "scripts/setup"
TOOLS = (
    *("bash", "cat", "id", "dirname", "sed", "awk", "grep", "timeout", "chmod", "mkdir", "mktemp"),
    *("rm", "sleep", "seq", "tail", "tr", "head", "setsid", "sh"),
)

ANSWERS = """\
case "$*" in
  --version) echo "Docker version 28.2.2, build e6534b4" ;;
  version*) echo "{version}" ;;
  info*) echo "{store}" ;;
  "buildx version") exit {buildx} ;;
  "context show") echo default ;;
esac
"""
SAYS = """\
case "$*" in
  --version) echo "Docker version 28.2.2, build e6534b4" ;;
  "context show") echo {context} ;;
  *) echo "{error}" >&2; exit 1 ;;
esac
"""
NEW_STORE = "[[driver-type io.containerd.snapshotter.v1]]"
OLD_STORE = "[[Backing Filesystem extfs] [Supports d_type true]]"
NOBODY = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@dataclass
class Machine:
    """A PATH with nothing on it but the usual tools and the stand-ins that a test adds."""

    bin: Path
    environment: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, script: str, folder: Path | None = None) -> Path:
        file = (folder or self.bin) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)
        return file

    def engine(self, version: str = "26.1.5", store: str = NEW_STORE, buildx: int = 0) -> None:
        self.add("docker", ANSWERS.format(version=version, store=store, buildx=buildx))

    def no_engine(self, error: str = NOBODY, context: str = "default") -> None:
        self.add("docker", SAYS.format(error=error, context=context))

    def run(self, *command: str, **extra: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), **self.environment, **extra}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def setup(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(SETUP), *arguments, **extra)

    def shell(self, script: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Runs lines of bash in which scripts/setup's functions are defined."""
        return self.run("bash", "-c", f'set -euo pipefail; . "{SETUP}"; {script}', **extra)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        path = shutil.which(tool)
        assert path, tool
        (folder / tool).symlink_to(path)
    machine = Machine(folder, {"HOME": str(tmp_path), "TFENV_RUN": str(tmp_path / "run")})
    machine.add("python3", f'exec "{sys.executable}" "$@"')
    return machine


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("26.1.5", "26"),
        ("1:20.10.24+dfsg1-1", "20"),
        ("28.2.2-0ubuntu1~22.04.1", "28"),
        ("", "0"),
        ("dev", "0"),
    ],
)
def test_major(machine: Machine, version: str, number: str) -> None:
    assert machine.shell(f"major '{version}'").stdout == f"{number}\n"


# ---- an engine that is there


def test_a_ready_machine_needs_neither_root_nor_apt(machine: Machine) -> None:
    machine.engine()
    machine.add("id", "echo 1000")
    done = machine.setup("engine")
    assert done.returncode == 0, done.stderr
    assert "have Docker Engine 26.1.5" in done.stderr


def test_the_client_that_has_buildx_is_found_wherever_it_is(machine: Machine) -> None:
    machine.engine(buildx=1)
    other = machine.add(
        "docker", ANSWERS.format(version="27.0.1", store=NEW_STORE, buildx=0), machine.bin / "more"
    )
    done = machine.setup("engine", PATH=f"{machine.bin}:{machine.bin / 'more'}")
    assert done.returncode == 0, done.stderr
    assert f"({other})" in done.stderr


def test_podman_under_the_name_of_docker_is_no_engine(machine: Machine) -> None:
    machine.add("docker", "echo podman version 4.3.1")
    assert machine.shell("probe_engine; echo $ENGINE").stdout == "absent\n"


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize(
    ("version", "store", "said"),
    [
        ("20.10.24+dfsg1", OLD_STORE, "20.10.24+dfsg1 is too old: 26 or newer"),
        ("25.0.5", NEW_STORE, "25.0.5 is too old"),
        ("26.1.5", OLD_STORE, '"containerd-snapshotter": true'),
    ],
)
def test_an_engine_that_does_not_do_is_refused_and_left_alone(
    machine: Machine, version: str, store: str, said: str, root: bool
) -> None:
    machine.engine(version, store)
    machine.add("id", f"echo {0 if root else 1000}")
    for forbidden in ("apt-get", "systemctl", "dockerd"):
        machine.add(forbidden, f"echo {forbidden} was called; touch {machine.bin}/called")
    for arguments in (("engine",), ("--check", "engine")):
        done = machine.setup(*arguments)
        assert done.returncode == 4
        assert said in done.stderr
    assert not (machine.bin / "called").exists()


def test_no_permission_on_the_socket(machine: Machine) -> None:
    machine.no_engine("permission denied while trying to connect to the Docker daemon socket")
    done = machine.setup("engine")
    assert done.returncode == 4
    assert "usermod -aG docker" in done.stderr


def test_an_engine_elsewhere_that_does_not_answer(machine: Machine) -> None:
    machine.no_engine("error during connect: dial tcp: no such host")
    done = machine.setup("engine", DOCKER_HOST="tcp://elsewhere:2375")
    assert done.returncode == 4
    assert "The Docker Engine of tcp://elsewhere:2375 does not answer" in done.stderr
    assert "no such host" in done.stderr


def test_a_context_elsewhere_that_does_not_answer(machine: Machine) -> None:
    machine.no_engine(context="farm")
    done = machine.setup("engine")
    assert done.returncode == 4
    assert "The Docker Engine of the current docker context does not answer" in done.stderr


def test_an_old_engine_that_is_stopped_is_not_started(machine: Machine) -> None:
    machine.no_engine()
    machine.add("dockerd", 'echo "Docker version 20.10.24+dfsg1, build 5d6db84"')
    done = machine.setup("engine")
    assert done.returncode == 4
    assert "20.10.24+dfsg1 is too old" in done.stderr


# ---- what is missing


def test_no_engine_at_all(machine: Machine) -> None:
    done = machine.shell("check_engine; printf '%s\\n' \"${TODO[@]}\"")
    assert done.returncode == 0
    assert "missing Docker Engine >= 26 with buildx" in done.stderr
    assert done.stdout == "apt-get install docker.io docker-buildx; start dockerd\n"


def test_buildx_alone_is_missing(machine: Machine) -> None:
    machine.engine(buildx=1)
    done = machine.setup("--check", "engine")
    assert done.returncode == 4
    assert "missing buildx for Docker Engine 26.1.5" in done.stderr


@pytest.mark.parametrize("python", ["echo no venv >&2; exit 1", "exit 127"])
def test_python_without_venv_is_missing(machine: Machine, python: str) -> None:
    machine.add("python3", python)
    done = machine.setup("--check", "python")
    assert done.returncode == 4
    assert "missing Python >= 3.10 with venv" in done.stderr


def test_the_first_python_that_does_is_found(machine: Machine) -> None:
    machine.add("python3", "exit 1", machine.bin / "first")
    done = machine.shell("find_python", PATH=f"{machine.bin / 'first'}:{machine.bin}")
    assert done.stdout == f"{machine.bin / 'python3'}\n"


def test_without_root_it_says_what_needs_root_and_does_nothing(machine: Machine) -> None:
    machine.no_engine()
    machine.add("dockerd", 'echo "Docker version 26.1.5, build a72d7cd"')
    machine.add("python3", "exit 1")
    machine.add("id", "echo 1000")
    machine.add("apt-get", f"touch {machine.bin}/called")
    machine.add("apt-config", f"echo LIST=/none PARTS={machine.bin}/")
    done = machine.setup()
    assert done.returncode == 4
    assert "  apt-get install python3 python3-venv\n" in done.stderr
    assert "  start dockerd\n" in done.stderr
    assert f"Type: sudo {SETUP} python debian engine" in done.stderr
    assert not (machine.bin / "called").exists()


def test_without_apt_it_says_so(machine: Machine) -> None:
    machine.add("python3", "exit 1")
    machine.add("id", "echo 0")
    done = machine.setup("python")
    assert done.returncode == 4
    assert "No apt-get here" in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("--chekc",), ("all",)])
def test_anything_else_gets_the_usage(machine: Machine, arguments: tuple[str, ...]) -> None:
    done = machine.setup(*arguments)
    assert done.returncode == 2
    assert "scripts/setup [--check] [python] [debian] [engine]" in done.stderr


# ---- a browser


@pytest.mark.parametrize("name", ["chromium", "google-chrome-stable", "google-chrome"])
def test_a_browser_that_is_there_is_used(machine: Machine, name: str) -> None:
    found = machine.add(name, "exit 0")
    done = machine.setup("browser")
    assert done.returncode == 0
    assert f"have a browser ({found})" in done.stderr


def test_the_browser_that_is_named_comes_first(machine: Machine, tmp_path: Path) -> None:
    machine.add("chromium", "exit 0")
    mine = machine.add("mine", "exit 0", tmp_path / "own")
    assert machine.shell("find_browser", TFENV_BROWSER=str(mine)).stdout == f"{mine}\n"


def test_without_a_browser_it_says_what_to_type(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add("chromium-browser", "exit 0")  # Ubuntu's, which asks for a snap
    done = machine.setup("browser")
    assert done.returncode == 4
    assert "missing Chromium" in done.stderr
    assert f"  apt-get install chromium\nType: sudo {SETUP} browser" in done.stderr


def test_only_who_asks_gets_a_browser(machine: Machine) -> None:
    machine.engine()
    assert "browser" not in machine.setup("--check", TFENV_DEBIAN_MIRROR="http://m.example/debian").stderr


# ---- starting and stopping


@pytest.mark.parametrize("there", ["nothing", "configuration", "old store"])
def test_an_engine_is_started_with_the_new_store_only_where_nobody_chose(
    machine: Machine, tmp_path: Path, there: str
) -> None:
    machine.add("docker", "exit 1")
    machine.add("dockerd", 'echo "started with: $*"; exit 1')
    if there == "configuration":
        (tmp_path / "daemon.json").write_text("{}")
    if there == "old store":
        (tmp_path / "image").mkdir()
    done = machine.shell(
        f"CONFIG={tmp_path}/daemon.json OLD_STORE={tmp_path}/image; has_systemd() {{ false; }}; start_engine"
    )
    ours = tmp_path / "run/daemon.json"
    if there == "nothing":
        assert f"started with: --config-file {ours}" in done.stderr
        assert "containerd-snapshotter" in ours.read_text()
    else:
        assert "started with: \n" in done.stderr
        assert not ours.exists()


def test_an_engine_that_does_not_start_shows_its_log(machine: Machine) -> None:
    machine.no_engine()
    machine.add(
        "dockerd",
        """[ "$1" != --version ] || exec echo "Docker version 26.1.5, build a72d7cd"
        echo failed to mount overlay: operation not permitted >&2; exit 1""",
    )
    done = machine.shell("has_systemd() { false; }; start_engine")
    assert done.returncode == 4
    assert "operation not permitted" in done.stderr
    assert "dockerd.log" in done.stderr


@pytest.fixture
def daemon(machine: Machine) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is called dockerd."""
    sleep = shutil.which("sleep")
    assert sleep
    shutil.copy(sleep, machine.bin / "dockerd")
    process = subprocess.Popen([machine.bin / "dockerd", "60"])
    yield process
    process.kill()
    process.wait()


def note(machine: Machine, pid: int, start: str) -> None:
    run = Path(machine.environment["TFENV_RUN"])
    run.mkdir()
    (run / "dockerd.pid").write_text(f"{pid} {start}\n")


def started_at(machine: Machine, pid: int) -> str:
    return machine.shell(f"started_at {pid}").stdout.strip()


def test_stop_ends_the_engine_that_was_started_here(
    machine: Machine, daemon: subprocess.Popen[bytes]
) -> None:
    note(machine, daemon.pid, started_at(machine, daemon.pid))
    done = machine.setup("--stop")
    assert done.returncode == 0
    assert daemon.wait(10) == -15
    assert "no engine to stop" in machine.setup("--stop").stderr


def test_stop_leaves_a_later_process_with_the_same_number(
    machine: Machine, daemon: subprocess.Popen[bytes]
) -> None:
    note(machine, daemon.pid, "1")
    assert "no engine to stop" in machine.setup("--stop").stderr
    assert daemon.poll() is None


def test_stop_leaves_any_other_program(machine: Machine) -> None:
    note(machine, os.getpid(), started_at(machine, os.getpid()))
    done = machine.setup("--stop")
    assert done.returncode == 0
    assert "no engine to stop" in done.stderr


def test_stop_without_any_note(machine: Machine) -> None:
    assert machine.setup("--stop").returncode == 0


# ---- packages: the real apt, with mirrors of files


def paragraph(name: str, version: str, depends: str = "") -> str:
    digest = hashlib.sha256(f"{name}{version}".encode()).hexdigest()
    return textwrap.dedent(f"""\
        Package: {name}
        Version: {version}
        Architecture: amd64
        Maintainer: nobody
        Filename: pool/{name}_{version}.deb
        Size: 1
        SHA256: {digest}
        Description: stand-in
        """) + (f"Depends: {depends}\n" if depends else "")


def publish(mirror: Path, codename: str, packages: Mapping[str, str], origin: str = "Debian") -> None:
    """One suite of a mirror: package names to 'version' or 'version | depends'."""
    index = "\n".join(paragraph(name, *map(str.strip, what.split("|"))) for name, what in packages.items())
    folder = mirror / "dists" / codename
    file = folder / "main/binary-amd64/Packages"
    file.parent.mkdir(parents=True)
    file.write_text(index)
    digest = hashlib.sha256(index.encode()).hexdigest()
    (folder / "Release").write_text(
        f"Origin: {origin}\nLabel: {origin}\nSuite: {codename}\nCodename: {codename}\nArchitectures: amd64\n"
        f"Components: main\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
        f" {digest} {len(index)} main/binary-amd64/Packages\n"
    )


OLD = {
    "docker.io": "20.10.24 | libc6, containerd, tini",
    "containerd": "1.6.20 | libc6",
    "tini": "0.19 | libc6",
    "libc6": "2.36",
    "base-files": "12.4",
}
NEW = {
    "docker.io": "26.1.5 | libc6 (>= 2.34), containerd, tini",
    "docker-cli": "26.1.5 | libc6 (>= 2.34)",
    "docker-buildx": "0.13.1 | libc6 (>= 2.34)",
    "containerd": "1.7.24 | libc6 (>= 2.38)",
    "tini": "0.20 | libc6 (>= 2.38)",
    "libc6": "2.41",
    "base-files": "13.8",
}
UBUNTU = {
    "docker.io": "28.2.2-0ubuntu1 | containerd",
    "docker-buildx": "0.21.3",
    "containerd": "1.7.28",
}
ONE_LINE = """\
# the usual
deb [ trusted=yes ] file:{mirror} bookworm main contrib
#deb [trusted=yes] file:{mirror} sid main
deb [trusted=yes] file:{other} bookworm main
"""
DEB822 = """\
# the usual
Types: deb deb-src
# a comment within
URIs: file:{mirror}
Suites: bookworm
Components: main contrib
Trusted: yes

Enabled: no
Types: deb
URIs: file:{mirror}
Suites: sid
Components: main
"""


@dataclass
class Apt:
    """A whole apt of its own below one folder: nothing of this machine's is read or written."""

    root: Path
    machine: Machine

    def sources(self, name: str, text: str) -> None:
        (self.root / "etc/sources.list.d" / name).write_text(
            text.format(mirror=self.root / "debian", other=self.root / "other")
        )

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        prepare = (
            f"SCRATCH={self.root}/scratch; CONFIG={self.root}/docker/daemon.json; mkdir -p $SCRATCH; "
            'apt_install() { apt-get "${APT[@]}" -s --no-remove --no-install-recommends install "$@"; }; '
        )
        return self.machine.shell(
            prepare + script, PATH=os.environ["PATH"], APT_CONFIG=str(self.root / "apt.conf")
        )

    def installs(self, script: str) -> dict[str, str]:
        done = self.shell(script)
        assert done.returncode == 0, done.stderr
        lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("Inst ", "Remv "))]
        assert all(word[0] == "Inst" for word in lines)
        return {words[1]: next(word for word in words if word[0] == "(")[1:] for words in lines}


@pytest.fixture
def apt(tmp_path: Path, machine: Machine) -> Apt:
    if not shutil.which("apt-get"):
        pytest.skip("no apt on this machine")
    for folder in ("etc/sources.list.d", "etc/preferences.d", "lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    installed = "".join(
        paragraph(name, OLD[name]) + "Status: install ok installed\n\n" for name in ("libc6", "base-files")
    )
    (tmp_path / "status").write_text(installed)
    (tmp_path / "apt.conf").write_text(
        textwrap.dedent(f"""\
            Dir::Etc "{tmp_path}/etc";
            Dir::Etc::main "{tmp_path}/etc/apt.conf";
            Dir::Etc::parts "{tmp_path}/etc/apt.conf.d";
            Dir::State "{tmp_path}";
            Dir::State::status "{tmp_path}/status";
            Dir::State::lists "{tmp_path}/lists";
            Dir::Cache "{tmp_path}/cache";
            Dir::Log "{tmp_path}";
            APT::Architecture "amd64";
            APT::Architectures {{ "amd64"; }};
            APT::Sandbox::User "";
            Acquire::Languages "none";
            """)
    )
    publish(tmp_path / "other", "bookworm", {"libc6": "1.0"}, origin="Somebody")
    publish(tmp_path / "other", "trixie", {"docker.io": "99.0", "libc6": "99.0"}, origin="Somebody")
    return Apt(tmp_path, machine)


@pytest.mark.parametrize(("name", "text"), [("debian.list", ONE_LINE), ("debian.sources", DEB822)])
def test_debian_12_gets_the_next_engine_and_nothing_else_of_the_next_release(
    apt: Apt, name: str, text: str
) -> None:
    publish(apt.root / "debian", "bookworm", OLD)
    publish(apt.root / "debian", "trixie", NEW)
    apt.sources(name, text)
    before = {file: file.read_bytes() for file in (apt.root / "etc").rglob("*") if file.is_file()}
    assert apt.installs("install_engine") == {
        "docker.io": "26.1.5",
        "docker-cli": "26.1.5",
        "docker-buildx": "0.13.1",
        "containerd": "1.6.20",
        "tini": "0.19",
    }
    assert before == {file: file.read_bytes() for file in (apt.root / "etc").rglob("*") if file.is_file()}
    assert "containerd-snapshotter" in (apt.root / "docker/daemon.json").read_text()


def test_an_engine_configuration_that_is_there_is_kept(apt: Apt) -> None:
    publish(apt.root / "debian", "bookworm", NEW)
    apt.sources("debian.sources", DEB822)
    (apt.root / "docker").mkdir()
    (apt.root / "docker/daemon.json").write_text("{}")
    apt.shell("install_engine")
    assert (apt.root / "docker/daemon.json").read_text() == "{}"


def test_ubuntu_takes_its_own_engine(apt: Apt) -> None:
    publish(apt.root / "ubuntu", "noble-updates", UBUNTU, origin="Ubuntu")
    apt.sources("ubuntu.list", f"deb [trusted=yes] file:{apt.root}/ubuntu noble-updates main\n")
    assert apt.installs("install_engine") == {
        "docker.io": "28.2.2-0ubuntu1",
        "docker-buildx": "0.21.3",
        "containerd": "1.7.28",
    }


def test_debian_gets_its_own_chromium(apt: Apt) -> None:
    publish(apt.root / "debian", "bookworm", OLD | {"chromium": "156.0"})
    apt.sources("debian.sources", DEB822)
    assert apt.installs("make_browser") == {"chromium": "156.0"}


def test_ubuntu_is_told_to_bring_a_browser(apt: Apt) -> None:
    publish(apt.root / "ubuntu", "noble", {"chromium-browser": "2:1snap1"}, origin="Ubuntu")
    apt.sources("ubuntu.list", f"deb [trusted=yes] file:{apt.root}/ubuntu noble main\n")
    done = apt.shell("make_browser")
    assert done.returncode == 4
    assert "TFENV_BROWSER" in done.stderr


@pytest.mark.parametrize("origin", ["Ubuntu", "Debian"])
def test_no_engine_that_does_in_reach(apt: Apt, origin: str) -> None:
    publish(apt.root / "debian", "bookworm", OLD, origin=origin)
    apt.sources("debian.list", "deb [trusted=yes] file:{mirror} bookworm main\n")
    done = apt.shell("install_engine")
    assert done.returncode == 4
    assert not (apt.root / "docker").exists()
    if origin == "Debian":  # the mirror has no trixie
        assert (
            "No docker.io >= 26 in reach of apt (found: 20.10.24); not every mirror answered." in done.stderr
        )
    else:
        assert "apt's sources name no Debian mirror with bookworm" in done.stderr


def test_a_package_that_conflicts_is_never_removed(apt: Apt) -> None:
    publish(apt.root / "debian", "bookworm", NEW | {"docker-cli": "26.1.5"})
    index = apt.root / "status"
    index.write_text(index.read_text() + paragraph("podman-docker", "4.3") + "Status: install ok installed\n")
    index.write_text(
        index.read_text().replace(
            "Package: podman-docker\n", "Package: podman-docker\nConflicts: docker-cli\n"
        )
    )
    apt.sources("debian.sources", DEB822)
    assert apt.shell("install_engine").returncode == 100


def test_buildx_comes_from_the_makers_of_the_engine_where_apt_knows_them(apt: Apt) -> None:
    publish(apt.root / "debian", "bookworm", OLD)
    publish(apt.root / "docker", "bookworm", {"docker-buildx-plugin": "0.30"}, origin="Docker")
    apt.sources("debian.sources", DEB822)
    apt.sources("docker.list", f"deb [trusted=yes] file:{apt.root}/docker bookworm main\n")
    assert apt.installs("install_buildx") == {"docker-buildx-plugin": "0.30"}


def test_buildx_alone_is_borrowed_from_the_next_release(apt: Apt) -> None:
    publish(apt.root / "debian", "bookworm", OLD)
    publish(apt.root / "debian", "trixie", NEW)
    apt.sources("debian.sources", DEB822)
    assert apt.installs("install_buildx") == {"docker-buildx": "0.13.1"}


BOOTSTRAP = {"debootstrap": "1.0", "debian-archive-keyring": "2023"}


@pytest.mark.parametrize("packages", [BOOTSTRAP, {"debootstrap": "1.0"}])
def test_ubuntu_gets_the_bootstrapper_that_knows_a_debian_mirror(apt: Apt, packages: dict[str, str]) -> None:
    publish(apt.root / "ubuntu", "noble", packages, origin="Ubuntu")
    apt.sources("ubuntu.list", f"deb [trusted=yes] file:{apt.root}/ubuntu noble main\n")
    apt.root.joinpath("none").touch()
    assert apt.installs(f"BOOTSTRAPPER={apt.root}/none; make_debian") == packages
    done = apt.shell(f"BOOTSTRAPPER={apt.root}/none; check_debian; printf '%s\\n' \"${{TODO[@]}}\"")
    assert "missing a Debian mirror" in done.stderr
    assert done.stdout == "apt-get install debootstrap debian-archive-keyring\n"


@pytest.mark.parametrize(
    ("prepare", "source"),
    [
        ("TFENV_DEBIAN_MIRROR=http://m.example/debian", "deb file:/nowhere/ubuntu noble main"),
        ("BOOTSTRAPPER=/bin/sh", "deb file:/nowhere/ubuntu noble main"),
        ("BOOTSTRAPPER=/none", "deb file:/nowhere/debian/ bookworm main"),
        ("BOOTSTRAPPER=/none", "Types: deb\nURIs: file:/nowhere/debian\nSuites: bookworm\nComponents: main"),
        ("BOOTSTRAPPER=/none", "deb mirror+file:/etc/apt/mirrors/debian.list bookworm main"),
    ],
)
def test_a_machine_that_knows_a_debian_mirror_gets_nothing(apt: Apt, prepare: str, source: str) -> None:
    apt.sources("any.list" if source.startswith("deb ") else "any.sources", f"{source}\n")
    assert apt.installs(f"{prepare}; make_debian") == {}
    assert "have a Debian mirror" in apt.shell(f"{prepare}; check_debian").stderr


@pytest.mark.parametrize(
    "source",
    [
        "deb https://vendor.example/linux/debian bookworm stable",
        "# deb https://m.example/debian bookworm main",
        "deb https://m.example/debian-security bookworm-security main",
    ],
)
def test_what_is_no_debian_mirror(apt: Apt, source: str) -> None:
    apt.sources("any.list", f"{source}\n")
    assert "missing a Debian mirror" in apt.shell("BOOTSTRAPPER=/none; check_debian").stderr


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Types: deb\nSigned-By: /usr/share/keyrings/a.gpg\n", "[signed-by=/usr/share/keyrings/a.gpg]"),
        ("deb [arch=amd64 signed-by=/k/b.asc] file:/m s main\n", "[signed-by=/k/b.asc]"),
        ("deb [signed-by=/k/b.asc trusted=yes] file:/m s main\n", "[signed-by=/k/b.asc trusted=yes]"),
        ("Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n", ""),
        ("# deb [trusted=yes] file:/m s main\ndeb file:/m s main\n", ""),
        ("Trusted: yes\n", "[trusted=yes]"),
    ],
)
def test_signing_options(machine: Machine, tmp_path: Path, text: str, options: str) -> None:
    file = tmp_path / "sources"
    file.write_text(text)
    assert machine.shell(f"signing_options {file}", PATH=os.environ["PATH"]).stdout.strip() == options
