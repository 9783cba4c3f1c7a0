"""Snapshots in a registry, which is a small server of this process on the loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from snapshots import Tell, data
from tfenv.snapshot.registry import login

USER = ("team", "secret")


@dataclass
class Registry:
    """What the server holds, and what it was asked. ``auth``: none, Basic or Bearer."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    auth: str = ""
    host: str = ""
    broken: bool = False

    def allows(self, header: str) -> bool:
        basic = base64.b64encode(":".join(USER).encode()).decode()
        return {"": True, "Basic": header == f"Basic {basic}", "Bearer": header == "Bearer given"}[self.auth]

    @property
    def challenge(self) -> str:
        realm = f'realm="http://{self.host}/token",service="here",scope="repository:a:pull"'
        return f"Bearer {realm}" if self.auth == "Bearer" else 'Basic realm="here"'


class Handler(BaseHTTPRequestHandler):
    registry: Registry
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        of = self.registry
        of.asked.append(f"{self.command} {self.path}")
        sent = self.headers.get("Authorization", "")
        if self.path.startswith("/token"):
            good = sent == f"Basic {base64.b64encode(':'.join(USER).encode()).decode()}"
            self.answer(200 if good else 401, b'{"token": "given"}' if good else b"")
        elif not of.allows(sent):
            self.answer(401, WWW_Authenticate=of.challenge)
        elif of.broken and self.command == "PUT":
            self.answer(507, b"the disk is full")
        elif match := re.fullmatch(r"/v2/team/snap/manifests/(.+)", self.path):
            self.manifest(match[1], body)
        elif match := re.fullmatch(r"/v2/team/snap/blobs/(sha256:[0-9a-f]+)", self.path):
            found = of.blobs.get(match[1])
            self.answer(404) if found is None else self.answer(200, found)
        elif self.path == "/v2/team/snap/blobs/uploads/":
            self.answer(202, Location="/upload?state=1")
        elif match := re.fullmatch(r"/upload\?state=1&digest=(sha256:[0-9a-f]+)", self.path):
            good = f"sha256:{hashlib.sha256(body).hexdigest()}" == match[1]
            if good:
                of.blobs[match[1]] = body
            self.answer(201 if good else 400)
        else:
            self.answer(404)

    def manifest(self, reference: str, body: bytes) -> None:
        of = self.registry
        if self.command == "PUT":
            value = json.loads(body)
            if {one["digest"] for one in (value["config"], *value["layers"])} - of.blobs.keys():
                self.answer(400, b"MANIFEST_BLOB_UNKNOWN")
                return
            of.manifests[reference] = of.manifests[f"sha256:{hashlib.sha256(body).hexdigest()}"] = body
            self.answer(201)
        elif reference in of.manifests:
            self.answer(200, of.manifests[reference])
        else:
            self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = handle_any  # noqa: N815


@pytest.fixture
def registry() -> Iterator[Registry]:
    of = Registry()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Its", (Handler,), {"registry": of}))
    of.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield of
    server.shutdown()
    server.server_close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return small.place(tmp_path, monkeypatch)


def logged_in(tmp_path: Path, host: str) -> None:
    (tmp_path / "docker").mkdir()
    code = base64.b64encode(":".join(USER).encode()).decode()
    (tmp_path / "docker" / "config.json").write_text(json.dumps({"auths": {host: {"auth": code}}}))


def push(registry: Registry, tell: Tell) -> Any:
    return data(tell("archive", small.CELL, "--to", f"{registry.host}/team/snap", "--json"))


def test_pushed_and_rebuilt_elsewhere(registry: Registry, here: Place, tell: Tell) -> None:
    told = push(registry, tell)
    assert told["snapshot"] == f"{registry.host}/team/snap:{small.CELL}"
    assert registry.asked[-1] == f"PUT /v2/team/snap/manifests/{small.CELL}"
    shutil.rmtree(here.store.root)
    for name in (told["snapshot"], f"{registry.host}/team/snap@{told['manifest']}"):
        found = data(tell("rebuild", name, "--json"))
        assert (found["outcome"], found["elsewhere"]) == ("identical", {})


def test_what_is_there_is_neither_sent_nor_fetched_again(registry: Registry, here: Place, tell: Tell) -> None:
    name = push(registry, tell)["snapshot"]
    tell("rebuild", name)
    registry.asked.clear()
    push(registry, tell)
    assert {line.split()[0] for line in registry.asked[:-1]} == {"HEAD"}
    registry.asked.clear()
    tell("rebuild", name)
    assert not [line for line in registry.asked if "/blobs/" in line]


def test_gc_frees_what_passed_through(registry: Registry, here: Place, tell: Tell) -> None:
    push(registry, tell)
    passing = here.store.root / "snapshots"
    assert any(passing.iterdir())
    assert tell("gc", "--dry-run")[0] == 0 and passing.exists()
    assert tell("gc")[0] == 0 and not passing.exists()


@pytest.mark.parametrize("auth", ["Basic", "Bearer"])
def test_with_the_users_own_login(
    registry: Registry, here: Place, tell: Tell, tmp_path: Path, auth: str
) -> None:
    registry.auth = auth
    code, _, err = tell("archive", small.CELL, "--to", f"{registry.host}/team/snap")
    assert code == 4 and f"docker login {registry.host}" in err and "secret" not in err
    logged_in(tmp_path, registry.host)
    assert tell("rebuild", push(registry, tell)["snapshot"])[0] == 0


def test_rehashed_in_the_registry(registry: Registry, here: Place, tell: Tell) -> None:
    name = push(registry, tell)["snapshot"]
    assert data(tell("archive", "--verify", name, "--json"))["problems"] == []
    manifest = json.loads(registry.manifests[small.CELL])
    titles = {
        one["annotations"]["org.opencontainers.image.title"]: one["digest"] for one in manifest["layers"]
    }
    wheel, lock, tool = (titles[t] for t in (WHEEL, "lock.json", "context/tools/trim.py"))
    registry.blobs[wheel] = b"x" + registry.blobs[wheel][1:]
    registry.blobs[lock] = registry.blobs[lock][:-1]
    del registry.blobs[tool]
    problems = data(tell("archive", "--verify", name, "--json"), 1)["problems"]
    assert {p["file"]: p["state"] for p in problems} == {
        WHEEL: "changed",
        "lock.json": "truncated",
        "context/tools/trim.py": "missing",
    }


WHEEL = "wheels/python/tensorflow-2.15.1-py3-none-any.whl"


@pytest.mark.parametrize("change", [b"x", b"longer than it was, and so not the same"])
def test_wrong_bytes_from_a_registry_are_not_kept(
    registry: Registry, here: Place, tell: Tell, change: bytes
) -> None:
    name = push(registry, tell)["snapshot"]
    digest = f"sha256:{hashlib.sha256(b'the contents of tensorflow').hexdigest()}"
    registry.blobs[digest] = change
    shutil.rmtree(here.store.root)
    code, _, err = tell("rebuild", name)
    assert code == 1 and ("expected" in err or "sends more than" in err)
    assert not (here.store.root / "snapshots" / "blobs" / "sha256" / digest[7:]).exists()


def test_another_manifest_than_its_digest_says(registry: Registry, here: Place, tell: Tell) -> None:
    digest = push(registry, tell)["manifest"]
    registry.manifests[digest] += b"\n"
    code, _, err = tell("rebuild", f"{registry.host}/team/snap@{digest}")
    assert code == 1 and "has another digest" in err


def test_a_registry_that_fails(registry: Registry, here: Place, tell: Tell) -> None:
    registry.broken = True
    code, _, err = tell("archive", small.CELL, "--to", f"{registry.host}/team/snap")
    assert code == 4 and "refuses (507): the disk is full" in err
    assert not registry.manifests


def test_what_is_not_there(registry: Registry, here: Place, tell: Tell) -> None:
    code, _, err = tell("rebuild", f"{registry.host}/team/snap:nothing")
    assert code == 2 and "is not there" in err
    code, _, err = tell("rebuild", f"{registry.host}/team/snap")
    assert code == 2 and "names no snapshot" in err
    code, _, err = tell("rebuild", f"{registry.host}/team/snap:x", "--offline")
    assert code == 2 and "--offline uses no network" in err


def test_nobody_answers(here: Place, tell: Tell) -> None:
    code, _, err = tell("rebuild", "127.0.0.1:9/team/snap:x")
    assert code == 4 and "does not answer" in err


def test_logins_that_are_there_and_not(tmp_path: Path) -> None:
    env = {"DOCKER_CONFIG": str(tmp_path / "docker")}
    assert login("a", env) is None
    logged_in(tmp_path, "a")
    assert login("a", env) == USER and login("b", env) is None
    (tmp_path / "docker" / "config.json").write_text("{")
    assert login("a", env) is None
