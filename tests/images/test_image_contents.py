"""What is in the image: the locked packages, whole and unchanged, and nothing that nobody loads."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from client import Image
from inside import ask
from packaging.utils import canonicalize_name
from testinfra.host import Host
from tfenv.model import Cell, Lock

pytestmark = pytest.mark.image

# Paths that the container itself makes: they are no part of the image.
RUNTIME = {"/", "/.dockerenv", "/proc", "/sys", "/dev", "/etc", "/home/tfenv", "/tmp"}
RUNTIME |= {f"/etc/{name}" for name in ("hosts", "hostname", "resolv.conf", "mtab")}
DEVELOPMENT = (".h", ".hpp", ".hxx", ".cuh", ".a", ".la", ".pyx", ".pxd", ".pxi")
# Not there on purpose: documentation, and folders that apt makes again when it needs them.
LEFT_OUT = (
    "/usr/share/doc/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/locale/",
    "/usr/share/man/",
    "/var/cache/apt/archives/partial",
    "/var/lib/apt/lists/partial",
    "/var/log/apt",
    "/var/lib/systemd",
)


def debian(host: Host) -> dict[str, tuple[str, str]]:
    """Version and state of every Debian package."""
    told = host.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'")
    return {name: (version, state) for name, version, state in map(str.split, told.splitlines())}


def test_the_debian_packages_are_those_of_the_lock(host: Host, image: Image, cell: Cell, lock: Lock):
    there = debian(host)
    assert {name: state for name, (_, state) in there.items() if state != "ii"} == {}
    locked = {package.name: package.version for package in lock.debian}
    if image.locked:
        assert {name: version for name, (version, _) in there.items()} == locked
        return
    # Today's packages: none that was asked for is missing, none is older than the locked one.
    assert set(cell.base.packages) <= there.keys()
    for name in there.keys() & locked.keys():
        assert host.run("dpkg --compare-versions %s ge %s", there[name][0], locked[name]).rc == 0, name


def test_dpkg_has_nothing_to_complain_about(root: Host):
    assert root.check_output("dpkg --audit") == ""


def test_no_file_of_debian_is_changed(root: Host):
    lines = root.run("dpkg --verify").stdout.splitlines()
    changed = [line for line in lines if not line.startswith("missing")]
    assert changed == []
    missing = [line.split()[-1] for line in lines if line.startswith("missing")]
    assert [path for path in missing if not path.startswith(LEFT_OUT)] == []


def test_the_distributions_are_the_locks_wheels(host: Host, lock: Lock):
    there = sorted((canonicalize_name(d["name"]), d["version"]) for d in ask(host, "distributions"))
    assert there == sorted((w.name, w.version) for w in lock.wheels if w.layer != "tool")


def test_wheels_left_out_are_not_there(host: Host, lock: Lock):
    there = {canonicalize_name(d["name"]) for d in ask(host, "distributions")}
    assert there.isdisjoint(rule.what for rule in lock.without)


def test_installed_files_are_those_of_their_records(host: Host):
    told = ask(host, "records", "12")
    assert told["problems"] == []
    assert told["files"] > 1000
    assert told["hashed_bytes"] > 1_000_000_000


def test_what_is_trimmed_is_gone(root: Host, lock: Lock, site_packages: str):
    """A rule of the matrix that matches nothing any more would go unnoticed otherwise."""
    listed = root.check_output(f"cd {site_packages} && find -L . -type f -printf '%%P\\n'").splitlines()
    kept = [rule.what for rule in lock.keep]
    for rule in lock.trim:
        left = [path for path in listed if fnmatchcase(path, rule.what)]
        assert [path for path in left if not any(fnmatchcase(path, glob) for glob in kept)] == []


def test_pip_check_is_clean(host: Host):
    assert host.check_output("python -m pip --no-cache-dir check") == "No broken requirements found."


def test_all_byte_code_is_there_and_never_stale(host: Host, cell: Cell, site_packages: str):
    """But for the CUDA layer's few empty modules: that layer is the same for every Python."""
    for folder in (site_packages, f"/usr/lib/python{cell.python}"):
        told = ask(host, "bytecode", folder)
        assert told.pop("modules") > 100, folder
        assert told == {"missing": [], "other_kind": [], "stale": [], "orphans": []}


def test_there_is_no_compiler(host: Host):
    names = ("gcc", "cc", "g++", "c++", "clang", "nvcc", "make", "cmake", "ld", "as", "cpp", "gfortran")
    assert [name for name in names if host.run("command -v %s", name).rc == 0] == []


def test_there_are_no_headers_and_static_libraries(root: Host, lock: Lock):
    names = " -o ".join(f"-name '*{suffix}'" for suffix in DEVELOPMENT)
    found = root.check_output(f"find /opt/tfenv -type f \\( {names} \\)").splitlines()
    kept = [rule.what for rule in lock.keep]
    left = [path for path in found if not any(fnmatchcase(path, f"*/{glob}") for glob in kept)]
    assert left == []


def test_nothing_is_left_of_apt(root: Host):
    folders = "/var/lib/apt/lists /var/cache/apt /var/log/apt"
    assert root.run(f"find {folders} -type f").stdout == ""


def test_logs_are_empty(root: Host):
    assert root.check_output("find /var/log -type f -size +0") == ""


def test_nothing_is_left_of_the_installers(root: Host):
    found = root.check_output(
        "find / -xdev -type d \\( -name .install -o -path '*/.cache/pip' -o -path '*/.cache/uv' -o -name .uv "
        "-o -path /root/.cache \\) 2>/dev/null || true"
    )
    assert found == ""
    assert root.run("command -v uv").rc != 0


def test_nothing_is_left_of_the_builds_mounts(root: Host):
    assert root.check_output("find /run -type f") == ""
    assert root.check_output("find /run -mindepth 1 -maxdepth 1 ! -name lock") in ("", "/run/tools")


def test_there_are_no_backups_and_no_temporary_files(root: Host):
    assert root.check_output("ls -A /tmp") == ""
    found = root.check_output("find /etc /var -type f -name '*-' -o -name '*-old' -o -name '*.dpkg-*'")
    assert found == ""


def test_no_file_is_newer_than_the_lock(root: Host, lock: Lock):
    found = root.check_output(f"find / -xdev -newermt @{lock.epoch}").splitlines()
    assert set(found) - RUNTIME == set()


def test_accounts_do_not_tell_the_day_of_the_build(root: Host, lock: Lock):
    """`passwd` stamps every account with the day, unless it is told another one."""
    days = [int(line.split(":")[2]) for line in root.check_output("cat /etc/shadow").splitlines()]
    assert days and max(days) <= lock.epoch // 86400


def test_nothing_gains_rights_but_debians_own(root: Host):
    """Files with the set-user-ID or set-group-ID bit, and files with capabilities."""
    found = root.check_output("find / -xdev -perm /6000 -type f").splitlines()
    owned = set(root.check_output("cat /var/lib/dpkg/info/*.list").splitlines())
    assert found
    assert [path for path in found if not {path, path.removeprefix("/usr")} & owned] == []


def test_nobody_can_change_programs_and_libraries(root: Host):
    folders = "/opt /usr /etc /bin /lib /sbin"
    assert root.check_output(f"find {folders} -xdev ! -type l -perm -0002") == ""
    assert root.check_output(f"find {folders} -xdev ! -user root") == ""


def test_folders_open_to_all_are_sticky(root: Host):
    found = root.check_output("find / -xdev -type d -perm -0002").splitlines()
    assert found
    assert root.check_output("find / -xdev -type d -perm -0002 ! -perm -1000") == ""
