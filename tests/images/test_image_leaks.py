"""Nothing of the machine that built the image is in it."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator
from subprocess import run
from urllib.parse import urlsplit

import pytest
from client import Docker, Image
from inside import ask
from testinfra.host import Host
from tfenv import index
from tfenv.model import Lock

pytestmark = pytest.mark.image


def settings_of_this_machine() -> set[str]:
    """Hosts and folders of this machine's own index, proxy and CA settings."""
    found = index.discover()
    urls = [found.index_url, *found.extra_index_urls, *found.find_links, found.proxy]
    urls += [value for name, value in os.environ.items() if name.lower().endswith("_proxy")]
    hosts = {urlsplit(url).hostname for url in urls if url}
    return {host for host in hosts if host and "." in host} | set(found.trusted_hosts)


@pytest.fixture(scope="module")
def untouched(docker: Docker, image: Image) -> Iterator[str]:
    """A container that was never started: the engine has not yet put its own files into /etc."""
    name = docker("create", "--network", "none", image.id).strip()
    yield name
    docker("rm", "--force", "--volumes", name)


@pytest.mark.parametrize("path", ["/etc/hosts", "/etc/resolv.conf", "/etc/hostname"])
def test_network_files_of_the_image_are_empty(docker: Docker, untouched: str, path: str):
    copied = run([docker.path, "cp", f"{untouched}:{path}", "-"], capture_output=True, check=False)
    if copied.returncode:
        assert b"Could not find the file" in copied.stderr
        return
    with tarfile.open(fileobj=io.BytesIO(copied.stdout)) as archive:
        assert [member.size for member in archive] == [0]


def test_no_proxy_and_no_index_is_in_the_environment(image: Image):
    wrong = re.compile(
        r"_proxy$|^((PIP|UV)_(?!CONSTRAINT$)|(APT|CURL|SSL|REQUESTS|GIT|DOCKER|BUILDKIT)_)", re.IGNORECASE
    )
    assert [name for name in image.environment if wrong.search(name)] == []


def test_no_installer_is_configured(root: Host):
    found = root.check_output(
        "find / -xdev -type f \\( -name pip.conf -o -name uv.toml -o -name .netrc -o -name .pypirc "
        "-o -name .curlrc -o -name .wgetrc -o -name .gitconfig \\)"
    )
    assert found == ""


def test_apt_has_no_proxy_and_no_password(root: Host):
    assert re.search(r"(?i)proxy", root.check_output("apt-config dump")) is None
    assert root.check_output("find /etc/apt/auth.conf.d -type f") == ""
    assert not root.file("/etc/apt/apt.conf").exists


def test_apts_sources_are_debians_own_and_of_the_locks_suite(root: Host, lock: Lock):
    """dpkg remembers the md5 of the list that apt ships, of which this is a copy."""
    sums = root.file("/var/lib/dpkg/info/apt.md5sums").content_string
    shipped = re.search(r"^(\w+)  usr/share/doc/apt/examples/sources\.list$", sums, re.MULTILINE)
    assert shipped
    assert root.file("/etc/apt/sources.list").md5sum == shipped[1]
    assert root.check_output("find /etc/apt/sources.list.d -type f") == ""
    lines = root.file("/etc/apt/sources.list").content_string.splitlines()
    suites = {line.split()[2] for line in lines if line.startswith("deb ")}
    assert suites == {lock.suite, f"{lock.suite}-updates", f"{lock.suite}-security"}


def test_apt_can_go_on_from_here(docker: Docker, image: Image, root: Host):
    """An image made from this one can change packages: the database is consistent, the keys are there."""
    assert root.check_output("ls /usr/share/keyrings | grep -c ^debian-archive") != "0"
    commands = "apt-get check && apt-get remove --yes netbase && dpkg --audit && ls -d /var/log/apt"
    said = docker("run", "--rm", "--user", "0", "--network", "none", image.id, "sh", "-c", commands)
    assert "Removing netbase" in said
    assert said.endswith("/var/log/apt\n")


def test_the_installer_left_no_note_of_where_wheels_came_from(host: Host):
    allowed = {"INSTALLER": {"", "uv"}, "REQUESTED": {""}}
    for dist in ask(host, "distributions"):
        for name, text in dist["notes"].items():
            assert text.strip() in allowed.get(name, set()), (dist["name"], name)


def test_no_host_of_this_machines_settings_is_in_the_image(
    docker: Docker, image: Image, root: Host, site_packages: str
):
    told = docker("history", "--no-trunc", image.id)
    told += docker("image", "inspect", "--format", "{{json .Config}}", image.id)
    for setting in settings_of_this_machine():
        assert setting not in told
        written = f"/etc /opt/tfenv/venv/pyvenv.cfg /opt/tfenv/venv/bin {site_packages}/*.dist-info/RECORD"
        assert root.run(f"grep -rFIl -- %s {written}", setting).stdout == ""


def test_the_certificates_are_exactly_debians(root: Host):
    told = ask(root, "certificates")
    assert told["strange"] == []
    assert told["bundle"] == told["packaged"]
    assert len(set(told["bundle"])) == len(told["files"])
    owned = set(root.file("/var/lib/dpkg/info/ca-certificates.list").content_string.splitlines())
    assert set(told["files"]) <= owned
    assert root.check_output("find /usr/local/share -type f") == ""


def test_no_home_folder_holds_anything(root: Host):
    assert root.check_output("find /home -type f") == ""
    extra = root.check_output("find /root -type f ! -name .bashrc ! -name .profile")
    assert extra == ""
