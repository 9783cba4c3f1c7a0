from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import docker
import docker.errors
import pytest
import requests
import tiny
from tfenv import oci
from tfenv.buildx import build_argv, run_build
from tfenv.container import (
    Bind,
    ContainerError,
    Containers,
    ProgramMissingError,
    Spec,
    connect,
    explain_api,
    explained,
    split_name,
)
from tfenv.container.running import Running
from tfenv.engine import probe
from tfenv.errors import IntegrityError, NotReadyError

NOT_FOUND = docker.errors.ImageNotFound("no such image")


class Api:
    """An engine in memory: images by id, tags by name."""

    def __init__(self, images=(), tags=None, keeps=None, containerd=True):
        self.containerd = containerd
        self.images, self.tags = set(images), dict(tags or {})
        self.keeps = keeps  # the id that a loaded archive gets
        self.timeout = 60
        self.said = []

    def info(self):
        kind = "io.containerd.snapshotter.v1" if self.containerd else "x"
        return {"DriverStatus": [["driver-type", kind]]}

    def inspect_image(self, name):
        found = self.tags.get(name, name)
        if found not in self.images:
            raise NOT_FOUND
        return {"Id": found}

    def tag(self, image, repository, tag):
        if repository.isupper():
            raise docker.errors.APIError("x", explanation="invalid reference format")
        self.tags[f"{repository}:{tag}"] = image

    def remove_image(self, name):
        if self.tags.pop(name, None) is None:
            raise NOT_FOUND

    def load_image(self, stream):
        self.timeout_while_loading = self.timeout
        self.loaded = b"".join(stream)
        if self.keeps:
            self.images.add(self.keeps)
        yield from self.said


def test_names():
    assert split_name("tfenv:2.15") == ("tfenv", "2.15")
    assert split_name("tfenv") == ("tfenv", "latest")
    assert split_name("host:5000/a/tfenv") == ("host:5000/a/tfenv", "latest")
    assert split_name("host:5000/a/tfenv:x") == ("host:5000/a/tfenv", "x")


def test_all_tags_move():
    api = Api({"new", "old"}, {"a:1": "old"})
    Containers(api).tag("new", ["a:1", "a:2"])
    assert api.tags == {"a:1": "new", "a:2": "new"}


def test_or_none_of_them():
    api = Api({"new", "old"}, {"a:1": "old"})
    with pytest.raises(ContainerError, match="invalid reference"):
        Containers(api).tag("new", ["a:1", "a:2", "BAD:1"])
    assert api.tags == {"a:1": "old"}


def test_an_image_that_is_not_there_gets_no_tag():
    api = Api({"old"}, {"a:1": "old"})
    with pytest.raises(ContainerError, match="no image new"):
        Containers(api).tag("new", ["a:1"])
    assert api.tags == {"a:1": "old"}


def test_a_tag_is_removed_once():
    containers = Containers(Api({"x"}, {"a:1": "x"}))
    assert containers.remove("a:1") and not containers.remove("a:1")
    assert containers.inspect("a:1") is None


@pytest.mark.parametrize(
    "name",
    [
        *(".", "..", "a/../b", "./a", "a//b", "", "a\nb", "A B", "?x=y#z", "a?b", "Upper", "-x"),
        *("a:b:c", "a@b", "a@sha256:zz", "a\x00", "\u00e9", "a:" + "x" * 129),
    ],
)
def test_a_name_that_is_none_in_a_url_is_no_image(name):
    api = Api({"x"}, {"a": "x"} | {name: "x"})
    assert Containers(api).inspect("a") == "x" and Containers(api).image(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "tfenv:2.15-cu12",
        "tfenv:2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
        "localhost:5000/team/envs_2/x__y:A.b-C",
        "Registry.io/a/b.c-d@sha256:" + "ab" * 32,
        "a:1@sha256:" + "ab" * 32,
        "sha256:" + "ab" * 32,
        "07861f5fc1bf",
    ],
)
def test_what_names_an_image_is_asked_for(name):
    assert Containers(Api({"x"}, {name: "x"})).inspect(name) == "x"


def test_load_gives_the_digest_and_waits_without_limit(tmp_path):
    path = tiny.tar(tmp_path / "a.tar", tiny.oci_files())
    digest = oci.describe(path).manifest_digest
    api = Api(keeps=digest)
    assert Containers(api).load(path) == digest
    assert (api.timeout_while_loading, api.timeout) == (None, 60)
    assert api.tags == {} and api.loaded == path.read_bytes()


def test_a_store_that_would_change_the_digest_gets_nothing(tmp_path):
    path = tiny.tar(tmp_path / "a.tar", tiny.oci_files())
    api = Api(keeps=oci.describe(path).config_digest, containerd=False)
    with pytest.raises(NotReadyError, match="containerd image store") as caught:
        Containers(api).load(path)
    assert "containerd-snapshotter" in caught.value.remedy
    assert not hasattr(api, "loaded")


def test_load_of_something_else_or_with_an_error(tmp_path):
    path = tiny.tar(tmp_path / "a.tar", tiny.oci_files())
    with pytest.raises(IntegrityError, match="did not keep the digest"):
        Containers(Api(keeps="sha256:other")).load(path)
    api = Api()
    api.said = [{"error": "write /x: no space left on device"}]
    with pytest.raises(NotReadyError, match="disk is full"):
        Containers(api).load(path)
    path.write_bytes(b"garbage")
    with pytest.raises(IntegrityError):
        Containers(Api()).load(path)


def sent_to_create(monkeypatch, tmp_path, spec):
    """What the SDK sends to the engine, with proxies in the docker client's configuration."""
    (tmp_path / "config.json").write_text(
        '{"proxies": {"default": {"httpProxy": "http://user:secret@proxy.test:1"}}}'
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    api = docker.APIClient(version="1.44")
    assert api._proxy_configs.http, "the SDK has read it"
    sent = []

    def create(config, *_rest):
        sent.append(config)
        raise docker.errors.APIError("x", explanation="that is enough")

    monkeypatch.setattr(api, "create_container_from_config", create)
    with pytest.raises(ContainerError, match="enough"):
        Containers(api).run(spec)
    return sent[0]


def test_what_a_container_is_made_of(monkeypatch, tmp_path):
    spec = Spec(image="x", entrypoint=("python3",), command=("-V",), env={"A": "b"}, gpus=True)
    config = sent_to_create(monkeypatch, tmp_path, spec)
    assert (config["Image"], config["Entrypoint"], config["Cmd"]) == ("x", ["python3"], ["-V"])
    host = config["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] is True
    assert host["DeviceRequests"][0]["Capabilities"] == [["gpu"]]


def test_the_proxies_of_the_docker_client_do_not_reach_a_container(monkeypatch, tmp_path):
    config = sent_to_create(monkeypatch, tmp_path, Spec(image="x", env={"A": "b"}))
    assert config["Env"] == ["A=b"]
    assert "secret" not in json.dumps(config)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', NotReadyError, "GPU"),
        ("nvidia-container-cli: requirement error", NotReadyError, "GPU"),
        ("bind source path does not exist: /x", NotReadyError, "this machine's files"),
        ('exec: "python": executable file not found in $PATH', ProgramMissingError, "lacks"),
        ("conflict", ContainerError, "refused: conflict"),
    ],
)
def test_what_the_engine_says_is_explained(said, kind, message):
    error = explain_api(said)
    assert type(error) is kind and message in error.message


def test_a_lost_engine_is_not_ready():
    with pytest.raises(NotReadyError, match="no Docker Engine"), explained():
        raise requests.ConnectionError("Connection refused")
    with pytest.raises(NotReadyError, match="may not talk"), explained():
        raise docker.errors.DockerException("PermissionError(13, 'Permission denied')")


def removing(monkeypatch, *answers):
    """How often a container's removal is asked for while the engine gives these answers, one each time."""
    asked = []

    def remove(name, **how):
        asked.append(name)
        if said := answers[len(asked) - 1]:
            raise docker.errors.APIError("409", explanation=said)

    api = Api()
    api.remove_container = remove
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    Containers(api)._remove_container("c")
    return len(asked)


def test_a_removal_under_way_is_one_and_another_trouble_is_tried_again(monkeypatch):
    assert removing(monkeypatch, "removal of container c is already in progress") == 1
    assert removing(monkeypatch, "device or resource busy", "device or resource busy", "") == 3
    with pytest.raises(ContainerError, match="busy"):
        removing(monkeypatch, *["device or resource busy"] * 3)


def test_no_engine(tmp_path):
    env = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    with pytest.raises(NotReadyError, match="no Docker Engine"), connect(env):
        pass


DOCKERFILE = """\
FROM scratch
COPY say.bin /usr/bin/python3
COPY say /say
"""


@contextmanager
def built(folder: Path, dockerfile: str = DOCKERFILE, say: str = "hello\n"):
    """A real image of its own name: (its name, its digest, the engine)."""
    context = tiny.context(folder / "ctx", dockerfile, say)
    archive, metadata = folder / "o.tar", folder / "m.json"
    line = build_argv(
        probe(),
        context=context,
        dockerfile=context / "Dockerfile",
        epoch=1700000000,
        output=archive,
        metadata=metadata,
    )
    digest = run_build(line, os.environ, folder / "log", metadata=metadata).digest
    name = tiny.name()
    with connect() as containers:
        try:
            loaded = containers.load(archive)
            assert containers.inspect(name) is None
            containers.tag(loaded, [name])
            yield name, digest, containers
        finally:
            containers.remove(name)


def all_containers():
    with connect() as containers:
        return {item["Id"] for item in containers._api.containers(all=True)}


@pytest.mark.engine
def test_a_loaded_archive_keeps_its_digest_and_runs(tmp_path):
    before = all_containers()
    with built(tmp_path) as (name, digest, containers):
        assert containers.inspect(name) == digest
        entry = ("/usr/bin/python3",)
        bound = tmp_path / "bound"
        bound.write_text("from outside\n")
        spec = Spec(image=name, entrypoint=entry, env={"A": "b"})
        ended, out, err = containers.run(spec)
        assert (ended.status, out, err) == (0, b"hello\n", b"")
        ended, out, _ = containers.run(Spec(image=name, entrypoint=entry, command=("x",), env={"A": "b"}))
        assert b"A=b\n" in out
        ended, out, _ = containers.run(
            Spec(image=name, entrypoint=entry, command=("!",), binds=(Bind(bound, "/say"),))
        )
        assert ended.status == 7 and out.startswith(b"from outside\n")
        with pytest.raises(ProgramMissingError):
            containers.run(Spec(image=name, entrypoint=("nope",)))
        with (
            pytest.raises(KeyboardInterrupt),
            containers.container(Spec(image=name, entrypoint=entry)) as running,
        ):
            assert b"".join(out for out, _ in running.output()) == b"hello\n"
            running.wait()
            running.kill()
            raise KeyboardInterrupt
    assert all_containers() <= before
    with connect() as containers:
        assert containers.inspect(name) is None


def test_a_context_that_does_not_exist_is_not_the_default_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    missing = pytest.raises(NotReadyError, match="no docker context gone")
    with missing as caught, connect({"DOCKER_CONTEXT": "gone"}):
        pass
    assert "docker context use default" in caught.value.remedy


@pytest.mark.parametrize(
    "host",
    [
        "tcp://[::1",
        "tcp://host:notaport",
        "tcp://127.0.0.1:99999",
        "garbage",
        "://",
        "http://",
    ],
)
def test_an_address_that_is_none_is_no_traceback(host):
    with (
        pytest.raises(NotReadyError, match="gave no usable answer") as caught,
        connect({"DOCKER_HOST": host}),
    ):
        pass
    assert host in caught.value.message and "DOCKER_HOST" in caught.value.remedy


@pytest.mark.parametrize(
    "text", ["[]", '"x"', '{"currentContext": 5}', '{"currentContext": ["x"]}', '{"proxies": 5}']
)
def test_a_configuration_that_is_none_is_no_traceback(monkeypatch, tmp_path, text):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(text)
    unusable = pytest.raises(NotReadyError, match="is not usable")
    with unusable as caught, connect({"DOCKER_CONFIG": str(tmp_path)}):
        pass
    assert str(tmp_path) in caught.value.message and "config.json" in caught.value.remedy


class Stuck:
    """An engine that answers nothing any more."""

    closed = False

    def kill(self, _name):
        raise requests.ReadTimeout("no answer")

    def close(self):
        Stuck.closed = True


def test_where_the_engine_hangs_nobody_listens_to_it_for_ever():
    Running(Stuck(), "c", Stuck()).kill()
    assert Stuck.closed
    Running(Stuck(), "c", iter(())).kill()


class Slow:
    """An engine that is still making the container when nobody waits any more."""

    def __init__(self, made_after, error=KeyboardInterrupt):
        self.left, self.error, self.names, self.removed = made_after, error, [], []

    def create_host_config(self, **_):
        return {}

    def containers(self, **_):
        return []

    networks = containers

    def create_container(self, *, name, **_):
        self.names.append(name)
        raise self.error

    def remove_container(self, name, **_):
        self.left -= 1
        if self.left >= 0:
            raise docker.errors.NotFound("not yet")
        self.removed.append(name)


@pytest.mark.parametrize("made_after", [0, 3])
def test_what_is_being_made_when_it_is_interrupted_is_removed(made_after, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    api = Slow(made_after)
    with pytest.raises(KeyboardInterrupt), Containers(api).container(Spec(image="x")):
        pass
    assert api.removed == api.names and len(api.names) == 1
    refused = Slow(0, docker.errors.APIError("no such image"))
    with pytest.raises(ContainerError), Containers(refused).container(Spec(image="x")):
        pass
    assert refused.removed == [] and refused.names != api.names


@pytest.mark.engine
def test_what_a_killed_tfenv_left_is_removed_by_the_next(tmp_path):
    script = (
        "import sys, os, signal\n"
        "from tfenv.container import Spec, connect\n"
        "spec = Spec(image=sys.argv[1], entrypoint=('/usr/bin/python3',))\n"
        "with connect() as one, one.network('x') as net, one.container(spec) as c:\n"
        "  print(c.id, net, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with built(tmp_path) as (name, _, containers):
        done = subprocess.run(
            [sys.executable, "-c", script, name], capture_output=True, text=True, check=False
        )
        container, network = done.stdout.split()
        assert done.returncode == -signal.SIGKILL and container in all_containers()
        assert containers._api.networks(names=[network])
        containers.run(Spec(image=name, entrypoint=("/usr/bin/python3",)))
        assert container not in all_containers() and not containers._api.networks(names=[network])
