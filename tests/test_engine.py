from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tfenv.engine import (
    Builder,
    Completed,
    Engine,
    check,
    clients,
    minimum,
    not_reached,
    parse_builder,
    parse_builders,
    probe,
    probe_builder,
    run_command,
    version_of,
)
from tfenv.errors import NotReadyError
from tfenv.resources import facts_dir
from tiny import FIXTURES, run_of

VERSION = (FIXTURES / "docker-version.json").read_text()
INFO = (FIXTURES / "docker-info.json").read_text()
ANSWERS = {
    "buildx version": "github.com/docker/buildx 0.13.1+ds1 0.13.1+ds1-3\n",
    "version": VERSION,
    "info": INFO,
    "buildx inspect": (FIXTURES / "buildx-inspect.txt").read_text(),
    "buildx ls": (FIXTURES / "buildx-ls.txt").read_text(),
    "context inspect": "unix:///var/run/docker.sock\n",
}
ENV = {"PATH": "/opt/bin:/usr/bin", "HOME": "/home/x"}
GOOD = Engine(
    client="/usr/bin/docker",
    server_version="26.1.5+dfsg1",
    buildx="0.13.1+ds1",
    containerd=True,
    builder=Builder(name="default", driver="docker"),
)
CONTAINER_BUILDER = """\
Name:          tf
Driver:        docker-container
Last Activity: 2024-03-20 10:00:00 +0000 UTC

Nodes:
Name:      tf0
Endpoint:  unix:///var/run/docker.sock
Status:    running
Buildkit:  v0.12.5
Platforms: linux/amd64
"""


def look(answers=ANSWERS, env=ENV, files=None):
    return probe(
        run_of(answers),
        env,
        is_program=lambda path: path == Path("/usr/bin/docker"),
        read=lambda path: (files or {}).get(str(path), ""),
    )


def test_probe_reads_a_real_engine():
    engine = look()
    assert engine == Engine(
        client="/usr/bin/docker",
        client_version="26.1.5+dfsg1",
        server_version="26.1.5+dfsg1",
        buildx="0.13.1+ds1",
        containerd=True,
        builder=Builder(name="default", driver="docker", buildkit=None, status="running"),
        builders=("default",),
        endpoint="unix:///var/run/docker.sock",
        root_dir="/var/lib/docker",
        kernel="6.1.0-test",
    )
    check(engine)


def test_rootless_proxies_and_docker_host_are_seen():
    info = json.dumps({**json.loads(INFO), "SecurityOptions": ["name=seccomp", "name=rootless"]})
    config = {"/home/x/.docker/config.json": '{"proxies": {"default": {"httpProxy": "http://p"}}}'}
    engine = look({**ANSWERS, "info": info}, {**ENV, "DOCKER_HOST": "tcp://there:1"}, config)
    assert engine.rootless and engine.proxied and engine.endpoint == "tcp://there:1"
    assert not look(files={"/home/x/.docker/config.json": "not json"}).proxied


def test_every_client_on_path_is_tried_and_a_chosen_one_wins():
    assert clients(ENV, lambda path: True) == ("/opt/bin/docker", "/usr/bin/docker")
    assert clients({"PATH": "/opt/bin"}, lambda path: True)[-1] == "/usr/bin/docker"
    assert clients({**ENV, "TFENV_DOCKER": "/my/docker"}, lambda path: False) == ("/my/docker",)


def test_the_first_client_with_buildx_is_taken():
    def run(argv):
        if argv[0] == "/opt/bin/docker" and argv[1] == "buildx":
            return Completed(1, "", "docker: 'buildx' is not a docker command.")
        return run_of(ANSWERS)(argv)

    engine = probe(run, ENV, is_program=lambda path: True, read=lambda path: "")
    assert engine.client == "/usr/bin/docker"


def test_builders_of_their_own_are_read():
    assert parse_builder(CONTAINER_BUILDER) == Builder(
        name="tf", driver="docker-container", buildkit="0.12.5", status="running"
    )
    assert parse_builder("ERROR: no builder") is None
    listed = "NAME/NODE DRIVER/ENDPOINT\ntf* docker-container\n \\_ tf0 \\_ unix://\ndefault docker\n"
    assert parse_builders(listed) == ("tf", "default")


def test_a_builder_in_a_container_tells_its_version_once_it_was_started():
    not_started = "Name: tf\nDriver: docker-container\n\nNodes:\nName: tf0\nStatus: inactive\n"
    answers = {**ANSWERS, "buildx inspect": not_started}
    builder = look(answers).builder
    assert builder is not None and builder.buildkit is None and not builder.own
    assert probe_builder(run_of({"buildx inspect": CONTAINER_BUILDER}), "docker").buildkit == "0.12.5"
    assert look().builder.own


def test_versions():
    assert version_of("26.1.5+dfsg1") == (26, 1, 5)
    assert version_of("v0.14.0") == (0, 14, 0)
    assert version_of("unknown") == ()


def refused(engine: Engine) -> NotReadyError:
    with pytest.raises(NotReadyError) as caught:
        check(engine)
    assert caught.value.exit_code == 4
    assert caught.value.remedy
    return caught.value


def test_no_client():
    engine = probe(run_of({}), {"PATH": ""}, is_program=lambda path: False)
    assert "no docker client" in refused(engine).message


def test_no_buildx():
    answers = {**ANSWERS, "buildx version": Completed(1, "", "unknown command")}
    error = refused(look(answers))
    assert "no buildx" in error.message and "docker-buildx" in error.remedy


@pytest.mark.parametrize(
    ("said", "message", "remedy"),
    [
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///s",
            "may not talk",
            "usermod -aG docker",
        ),
        (
            "Cannot connect to the Docker daemon at unix:///s. Is the docker daemon running?",
            "no Docker Engine answers",
            "systemctl start docker",
        ),
        ("something else", "no usable answer: something else", "docker version"),
    ],
)
def test_engine_not_reached(said, message, remedy):
    client_only = json.dumps({"Client": json.loads(VERSION)["Client"], "Server": None})
    engine = look({**ANSWERS, "version": Completed(1, client_only, said)})
    assert engine.server_version is None and engine.client_version
    error = refused(engine)
    assert message in error.message and remedy in error.remedy


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("tcp://there:2376", "connection refused"),
        ("tcp://there:2376", "error during connect: dial tcp: lookup there: no such host"),
        ("ssh://me@there", "Cannot connect to the Docker daemon at http://docker.example. Is it running?"),
        ("unix:///run/user/1000/docker.sock", "Cannot connect to the Docker daemon"),
    ],
)
def test_an_engine_that_somebody_chose_is_not_started_from_here(endpoint, said):
    error = not_reached(said, endpoint)
    assert error.message == f"no Docker Engine answers at {endpoint}"
    assert error.remedy.startswith("start it there, or unset DOCKER_HOST")


@pytest.mark.parametrize("endpoint", ["", "unix:///var/run/docker.sock"])
def test_the_engine_of_this_machine_is_started_here(endpoint):
    assert "systemctl start docker" in not_reached("connection refused", endpoint).remedy


def test_old_engine():
    error = refused(replace(GOOD, server_version="20.10.24+dfsg1", containerd=False))
    assert "20.10.24" in error.message and "26" in error.remedy
    assert "25.0.5" in refused(replace(GOOD, server_version="25.0.5")).message
    check(replace(GOOD, server_version="26.0.0"))


def test_the_lowest_versions_are_facts_with_a_source():
    told = json.loads((facts_dir() / "engine.json").read_text())
    assert set(told) == {"engine", "buildx", "buildkit", "cdi"}
    for name, entry in told.items():
        assert minimum(name).version == entry["minimum"] and version_of(entry["minimum"])
        assert len(entry["why"]) > 20 and entry["source"].startswith("https://")


def test_the_scripts_that_run_before_python_agree_on_the_lowest_engine():
    script = Path(__file__).resolve().parent.parent / "scripts" / "lib" / "engine.sh"
    assert re.findall(r"^readonly OLDEST=(\S+)", script.read_text(), re.MULTILINE) == [
        minimum("engine").version
    ]


def test_containerd_store_off():
    info = json.dumps({**json.loads(INFO), "Driver": "overlay2", "DriverStatus": [["Backing", "x"]]})
    error = refused(look({**ANSWERS, "info": info}))
    assert "containerd image store" in error.message
    assert '{"features": {"containerd-snapshotter": true}}' in error.remedy


def test_old_buildx():
    for old in ("0.10.5", "0.12.1"):
        error = refused(replace(GOOD, buildx=old))
        assert f"buildx {old}" in error.message and minimum("buildx").version in error.remedy
    check(replace(GOOD, buildx="0.13.0"))


def test_a_docker_container_builder_is_fine_when_new_enough():
    own = Builder(name="tf", driver="docker-container", buildkit="0.13.0")
    check(replace(GOOD, builder=own))
    check(replace(GOOD, builder=own, server_version="25.0.5"))
    check(replace(GOOD, builder=replace(own, buildkit=None)))
    error = refused(replace(GOOD, builder=replace(own, buildkit="0.12.5")))
    assert "BuildKit 0.12.5" in error.message and "buildx create" in error.remedy


def test_a_docker_container_builder_needs_an_engine_that_keeps_digests():
    own = Builder(name="tf", driver="docker-container", buildkit="0.13.0")
    error = refused(replace(GOOD, containerd=False, builder=own))
    assert "another digest" in error.message and "containerd-snapshotter" in error.remedy


def test_run_command_never_raises(tmp_path):
    assert run_command(["/nonexistent/program"]).returncode == 127
    assert run_command([str(tmp_path)]).returncode == 126
    assert run_command(["sleep", "30"], timeout=0.05).returncode == 124
    assert run_command(["echo", "x"]) == Completed(0, "x\n", "")


@pytest.mark.engine
def test_the_engine_of_this_machine_is_ready():
    check(probe())
