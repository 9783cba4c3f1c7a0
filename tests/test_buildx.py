from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny
from tfenv import oci
from tfenv.buildx import (
    PROXY_ARGS,
    BuildError,
    build_argv,
    client_env,
    explain,
    run_build,
)
from tfenv.engine import Builder, Engine, probe
from tfenv.errors import NotReadyError
from tfenv.progress import Progress

ENGINE = Engine(client="/usr/bin/docker", builder=Builder(name="default", driver="docker"))


def argv(engine=ENGINE, **more):
    given = {
        "context": Path("/ctx"),
        "dockerfile": Path("/ctx/Dockerfile"),
        "epoch": 1700000000,
        "output": Path("/store/tmp/a.tar"),
        "metadata": Path("/store/tmp/a.json"),
    }
    return build_argv(engine, **{**given, **more})


def test_the_whole_line(snapshot):
    assert (
        argv(
            named_contexts={"wheels": Path("/store/w"), "debs": Path("/store/d")},
            no_cache=True,
            image="tfenv-building:1",
        )
        == snapshot
    )


def test_a_plain_line_has_no_proxies_and_the_cache():
    line = argv()
    assert "--no-cache" not in line
    assert not any("proxy" in item.lower() for item in line)
    assert line[-1] == "/ctx"


def test_proxies_of_the_clients_configuration_are_emptied():
    line = argv(Engine(client="docker", proxied=True))
    for name in PROXY_ARGS:
        assert line[line.index(f"{name}=") - 1] == "--build-arg"


def test_a_comma_in_the_output_path_is_quoted():
    line = argv(output=Path("/a,b/c.tar"))
    assert 'type=oci,"dest=/a,b/c.tar",compression=zstd' in line[line.index("--output") + 1]


def test_the_clients_environment_cannot_change_the_result():
    env = client_env({"PATH": "/bin", "SOURCE_DATE_EPOCH": "1", "BUILDX_GIT_LABELS": "1"})
    assert env["PATH"] == "/bin"
    assert "SOURCE_DATE_EPOCH" not in env and "BUILDX_GIT_LABELS" not in env
    assert env["BUILDX_GIT_INFO"] == "false"


def client(tmp_path, body):
    """A stand-in for the docker client: a Python program."""
    script = tmp_path / "client.py"
    script.write_text(body)
    return [sys.executable, str(script)]


def play(tmp_path, stream, status=0, metadata=True):
    meta = tmp_path / "meta.json"
    text = '{"containerimage.digest": "sha256:abc"}'
    return client(
        tmp_path,
        f"import sys, pathlib\n"
        f"{f'pathlib.Path({str(meta)!r}).write_text({text!r})' if metadata else ''}\n"
        f"sys.stderr.write(pathlib.Path({str(stream)!r}).read_text())\n"
        f"sys.exit({status})\n",
    )


def start(tmp_path, line, on_event=lambda event: None):
    return run_build(line, dict(os.environ), tmp_path / "log.txt", on_event, metadata=tmp_path / "meta.json")


def test_a_build_that_goes_well(tmp_path):
    seen = []
    result = start(tmp_path, play(tmp_path, tiny.FIXTURES / "build-ok.rawjson"), seen.append)
    assert result.digest == "sha256:abc"
    assert result.steps[-1].name == "exporting to oci image format"
    assert len(seen) > 20
    log = (tmp_path / "log.txt").read_text()
    assert log.startswith("$ ") and "| Written by Andreas Jaeger." in log
    assert "done 0.4 s [a 2/2] RUN" in log
    assert (tmp_path / "log.rawjson").read_text() == (tiny.FIXTURES / "build-ok.rawjson").read_text()


def test_a_failing_step_is_named_with_its_output_the_log_and_the_command(tmp_path):
    with pytest.raises(BuildError) as caught:
        start(tmp_path, play(tmp_path, tiny.FIXTURES / "build-fail.rawjson", 1, metadata=False))
    error = caught.value
    assert error.exit_code == 1
    assert '[3/3] RUN --network=none ["/ldconfig","--nonsense"]' in error.message
    assert "exit code: 64" in error.message
    assert "  | /ldconfig: unrecognized option '--nonsense'" in error.message
    assert str(tmp_path / "log.txt") in error.message
    assert error.remedy.splitlines()[-1] == error.command
    assert error.step is not None and error.log == tmp_path / "log.txt"
    assert "ERROR: failed to solve" in (tmp_path / "log.txt").read_text()


def test_a_failure_outside_of_any_step_shows_what_the_client_said(tmp_path):
    line = client(tmp_path, "import sys; print('ERROR: bad flag\\x1b[31m'); sys.exit(1)")
    with pytest.raises(BuildError, match=r"\| ERROR: bad flag\n"):
        start(tmp_path, line)


def test_success_without_a_digest_is_a_failure(tmp_path):
    with pytest.raises(BuildError, match="wrote no digest"):
        start(tmp_path, play(tmp_path, tiny.FIXTURES / "build-ok.rawjson", metadata=False))


def test_no_client(tmp_path):
    with pytest.raises(NotReadyError, match="cannot start /nonexistent"):
        start(tmp_path, ["/nonexistent"])


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Cannot connect to the Docker daemon at unix:///s. Is the docker daemon running?",
        "ERROR: failed to receive status: rpc error: code = Unavailable desc = error reading from "
        "server: EOF",
    ],
)
def test_an_engine_that_goes_away(said):
    error = explain(["docker"], 1, Progress(), [said], Path("log"))
    assert isinstance(error, NotReadyError) and "went away" in error.message


def failed_step(output="", error="boom"):
    import base64

    progress = Progress()
    vertex = {"digest": "d", "name": "RUN x", "started": "2024-01-01T00:00:00Z", "error": error}
    data = base64.b64encode(output.encode()).decode()
    progress.feed({"vertexes": [vertex], "logs": [{"vertex": "d", "data": data}]})
    return progress


def test_a_full_disk_in_a_step_or_outside():
    for progress, said in (
        (failed_step("OSError: [Errno 28] No space left on device\n"), []),
        (Progress(), ["ERROR: write /var/lib: no space left on device"]),
    ):
        error = explain(["docker"], 1, progress, said, Path("log"))
        assert isinstance(error, NotReadyError) and "tfenv gc" in error.remedy


def test_a_step_that_fails_on_its_own_connection_is_no_lost_engine():
    progress = failed_step("connection refused\n", 'process "x" did not complete successfully')
    assert isinstance(explain(["docker"], 1, progress, [], Path("log")), BuildError)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_an_interrupted_build_leaves_no_process(tmp_path):
    pids = tmp_path / "pids"
    line = client(
        tmp_path,
        "import os, subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(pids)!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('{\"vertexes\": []}', flush=True)\n"
        "time.sleep(600)\n",
    )
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, line, lambda event: os.kill(os.getpid(), signal.SIGINT))
    parent, child = (int(pid) for pid in pids.read_text().split())
    assert gone(child) and gone(parent)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux's kernel does this")
def test_a_build_that_is_killed_outright_leaves_no_client(tmp_path):
    line = client(tmp_path, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    code = (
        "import os, pathlib, sys\n"
        "from tfenv.buildx import run_build\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "run_build(sys.argv[2:], os.environ, folder / 'log.txt', metadata=folder / 'm.json')\n"
    )
    builder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *line])
    try:
        deadline, said = time.monotonic() + 30, []
        while len(said) < 2 and time.monotonic() < deadline:  # the command line, and what the client says
            time.sleep(0.05)
            said = (tmp_path / "log.txt").read_text().splitlines() if (tmp_path / "log.txt").exists() else []
        pid = int(said[1])
        assert alive(pid)
    finally:
        builder.kill()
        builder.wait()
    assert gone(pid)


DOCKERFILE = """\
FROM scratch
COPY say.bin say /
RUN --network=none ["/say.bin", "x"]
"""


def build(tmp_path, dockerfile=DOCKERFILE, engine=None, env=None, label="a", times=0):
    folder = tiny.context(tmp_path / "ctx", dockerfile)
    for file in folder.iterdir():
        os.utime(file, (times, times))
    where = tmp_path / label
    where.mkdir()
    line = build_argv(
        engine or probe(),
        context=folder,
        dockerfile=folder / "Dockerfile",
        epoch=1700000000,
        output=where / "o.tar",
        metadata=where / "m.json",
        no_cache=True,
    )
    return run_build(line, env or os.environ, where / "log", metadata=where / "m.json")


@pytest.mark.engine
def test_two_real_builds_give_one_digest(tmp_path):
    layered = f"{DOCKERFILE}FROM scratch\nCOPY say say.bin /\n"
    first = build(tmp_path, layered, times=1)
    second = build(tmp_path, layered, label="b", times=1)
    assert first.digest == second.digest
    assert build(tmp_path, layered, label="c", times=2).digest != first.digest, "file times count"
    assert oci.describe(tmp_path / "a/o.tar").manifest_digest == first.digest
    assert "say.bin" in first.log.read_text()
    oci.verify_blobs(tmp_path / "a/o.tar")
    assert (tmp_path / "a/o.tar").read_bytes() == (tmp_path / "b/o.tar").read_bytes()


@pytest.mark.engine
def test_a_real_failure(tmp_path):
    with pytest.raises(BuildError) as caught:
        build(tmp_path, DOCKERFILE + 'RUN --network=none ["/say.bin", "!"]\n')
    assert "exit code: 7" in caught.value.message and "| hello" in caught.value.message


@pytest.mark.engine
def test_proxies_of_the_docker_client_do_not_reach_a_real_build(tmp_path):
    config = tmp_path / "docker"
    config.mkdir()
    (config / "config.json").write_text(
        '{"proxies": {"default": {"httpProxy": "http://user:secret@proxy.test:1"}}}'
    )
    env = {**os.environ, "DOCKER_CONFIG": str(config)}
    engine = probe(env=env)
    assert engine.proxied
    log = build(tmp_path, engine=engine, env=env).log.read_text()
    output = [line for line in log.splitlines() if " | " in line]
    assert any("PATH=" in line for line in output)
    assert not any("proxy" in line.lower() for line in output)
