from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_processes import runs
from test_unpacked import DIGEST, unpack_here
from tfenv.container import Bind, Spec
from tfenv.errors import NotReadyError, UsageError
from tfenv.rootfs_run import (
    Driver,
    Rootfs,
    environment,
    find_driver,
    main,
    script,
    unshare,
    with_us,
)
from tfenv.unpacked import read_unpacked


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    return unpack_here(tmp_path)


def test_the_driver_is_nvidias_folder_or_the_files_beside_libcuda(tmp_path: Path) -> None:
    assert find_driver(tmp_path) == Driver()
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.12", "libc.so.6"):
        (libraries / name).write_text("")
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvidia-smi").write_text("")
    found = find_driver(tmp_path)
    assert [path.name for path in found.libraries] == ["libcuda.so.1", "libnvidia-ml.so.1"]
    assert [path.name for path in found.tools] == ["nvidia-smi"]
    own = tmp_path / "usr/local/nvidia"
    (own / "lib64").mkdir(parents=True)
    (own / "lib64/libcuda.so.1").write_text("")
    assert find_driver(tmp_path) == Driver(folder=own)


def test_the_gpus_are_those_that_are_given(unpacked: Path) -> None:
    image = read_unpacked(unpacked)
    of = environment(image, Spec(image="", gpus="device=1"), Driver(folder=Path("/n")), {})
    assert (of["CUDA_VISIBLE_DEVICES"], of["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")
    own = Spec(image="", gpus="device=1", env={"CUDA_VISIBLE_DEVICES": "3"})
    assert environment(image, own, Driver(), {})["CUDA_VISIBLE_DEVICES"] == "3"


def test_the_environment_is_the_images_and_nothing_of_the_hosts_but_ncclsown(unpacked: Path) -> None:
    image = read_unpacked(unpacked)
    host = {"NCCL_NVLS_ENABLE": "0", "SECRET": "x", "PATH": "/host", "http_proxy": "p"}
    env = environment(image, Spec(image="", gpus=True, env={"A": "b"}), Driver(folder=Path("/n")), host)
    assert env["NCCL_NVLS_ENABLE"] == "0" and env["A"] == "b" and env["LANG"] == "C.UTF-8"
    assert not {"SECRET", "http_proxy", "CUDA_VISIBLE_DEVICES"} & set(env)
    assert env["PATH"] == "/opt/bin:/bin:/usr/local/nvidia/bin"
    assert env["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
    without = environment(image, Spec(image=""), Driver(), host)
    assert without["CUDA_VISIBLE_DEVICES"] == "" and "LD_LIBRARY_PATH" not in without


def test_the_script_mounts_what_docker_would_and_then_starts(unpacked: Path, tmp_path: Path) -> None:
    image = read_unpacked(unpacked)
    odd = tmp_path / "a folder; rm -rf x"
    odd.mkdir()
    spec = Spec(image="", command=("python", "a b"), binds=(Bind(odd, "/tfenv"),), shm_size="64m", gpus=True)
    text = script(image, spec, Driver(folder=Path("/usr/local/nvidia")), {"A": "b c"}, root=True)
    lines = [shlex.split(line) for line in text.splitlines()]
    assert lines[0] == ["set", "-e"]
    assert ["mount", "--rbind", "/dev", f"{unpacked}/dev"] in lines
    assert ["mount", "--bind", str(odd), f"{unpacked}/tfenv"] in lines
    assert ["mount", "-o", "remount,bind,ro", f"{unpacked}/tfenv", "||", "true"] in lines
    assert ["mount", "-t", "tmpfs", "-o", "rw,exec,mode=1777", "tmpfs", f"{unpacked}/tmp"] in lines
    assert any("mode=1777,size=64m" in line for line in lines)
    assert ["mount", "--bind", "/usr/local/nvidia", f"{unpacked}/usr/local/nvidia"] in lines
    start = [
        "chroot",
        "--userspec=1000:1001",
        str(unpacked),
        "/usr/bin/env",
        "-i",
        "-C",
        "/home/tfenv",
    ]
    assert lines[-1] == [*start, "A=b c", "python", "a b", "||", "exit", "$?"]


def test_without_root_no_user_is_taken_and_a_user_namespace_is(unpacked: Path) -> None:
    text = script(read_unpacked(unpacked), Spec(image=""), Driver(), {}, root=False)
    assert "--userspec" not in text
    assert "--map-root-user" in unshare(root=False) and "--user" not in unshare(root=True)


def test_single_libraries_are_put_into_a_folder_of_their_own(unpacked: Path, tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.580"
    library.write_text("")
    link = tmp_path / "libcuda.so.1"
    link.symlink_to(library)
    driver = Driver(libraries=(link,), tools=(library,))
    text = script(read_unpacked(unpacked), Spec(image=""), driver, {}, root=True)
    assert f"mount --bind {library} {unpacked}/usr/local/nvidia/lib64/libcuda.so.1" in text
    assert f"{unpacked}/usr/local/nvidia/bin/libcuda.so.580" in text


def test_a_file_is_bound_to_a_file(unpacked: Path, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("")
    spec = Spec(image="", binds=(Bind(file, "/x/f", read_only=False),))
    text = script(read_unpacked(unpacked), spec, Driver(), {}, root=True)
    assert f"test -e {unpacked}/x/f || : > {unpacked}/x/f" in text
    assert f"remount,bind,ro {unpacked}/x/f" not in text


def test_an_image_without_env_is_refused(unpacked: Path) -> None:
    (unpacked / "usr/bin/env").unlink()
    with pytest.raises(UsageError, match="lacks /usr/bin/env"):
        script(read_unpacked(unpacked), Spec(image=""), Driver(), {}, root=True)


def test_a_host_without_unshare_is_not_ready(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with (
        pytest.raises(NotReadyError, match="no unshare"),
        Rootfs(read_unpacked(unpacked), Driver(), {}).container(Spec(image="")),
    ):
        pass


def can_unshare(*more: str) -> bool:
    line = ["unshare", *more, "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "true"]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


@pytest.fixture
def living(tmp_path: Path) -> Path:
    """An image of this machine's own programs: enough for a shell and env."""
    if not can_unshare(*([] if os.geteuid() == 0 else ["--user", "--map-root-user"])):
        pytest.skip("this machine gives no namespaces")
    folder = tmp_path / "live"
    wanted = [
        Path(str(shutil.which(name))).resolve() for name in ("sh", "env", "cat", "id", "touch", "sleep")
    ]
    names = dict(zip(("sh", "env", "cat", "id", "touch", "sleep"), wanted, strict=True))
    linked = subprocess.run(["ldd", *map(str, wanted)], capture_output=True, text=True, check=True).stdout
    libraries = {word for word in linked.split() if word.startswith("/") and not word.endswith(":")}
    for name, program in names.items():
        (folder / "usr/bin").mkdir(parents=True, exist_ok=True)
        shutil.copy(program, folder / "usr/bin" / name)
    for library in libraries:
        target = folder / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    config = {"Env": ["PATH=/usr/bin"], "User": "1000:1000", "WorkingDir": "/tmp"}
    (tmp_path / "live.json").write_text(json.dumps({"manifest": DIGEST, "config": config}))
    return folder


def run(folder: Path, *command: str, **more: Any) -> tuple[int, str]:
    spec = Spec(image="", command=command, **more)
    with Rootfs(read_unpacked(folder), Driver(), {"NCCL_X": "1", "HOSTS": "own"}).container(spec) as running:
        out = b"".join(out + err for out, err in running.output())
        return running.wait().status, out.decode()


def test_a_command_runs_in_the_image_and_leaves_no_mounts(living: Path, tmp_path: Path) -> None:
    bound = tmp_path / "bound"
    bound.mkdir()
    (bound / "f").write_text("from outside\n")
    line = "cat /in/f; echo $NCCL_X:$HOSTS; id -u; touch /in/no || echo may not write; exit 7"
    code, out = run(living, "sh", "-c", line, binds=(Bind(bound, "/in"),))
    uid = 1000 if os.geteuid() == 0 else 0
    assert (code, out.splitlines()[:3]) == (7, ["from outside", "1:", str(uid)])
    assert "may not write" in out and not (bound / "no").exists()
    assert str(living) not in Path("/proc/self/mountinfo").read_text()


def test_a_program_that_is_missing_is_127(living: Path) -> None:
    assert run(living, "nothing-such")[0] == 127


def test_what_runs_is_ended_with_its_children(living: Path, tmp_path: Path) -> None:
    mark = str(600 + os.getpid() / 1e6)
    spec = Spec(image="", command=("sh", "-c", f"sleep {mark} & sleep {mark} & echo on; wait"))
    with Rootfs(read_unpacked(living), Driver(), {}).container(spec) as running:
        assert next(running.output()) == (b"on\n", b"")
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in left


def test_the_module_is_a_command(living: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    code = main(
        ["--rootfs", str(living), "--gpus", "none", "--env", "A=b", "--", "sh", "-c", "echo $A; exit 4"]
    )
    assert (code, capfdbinary.readouterr().out) == (4, b"b\n")


def test_localhost_has_an_address(living: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """TensorBoard asks for it, and an image has no hosts file of its own."""
    assert (
        main(["--rootfs", str(living), "--", "sh", "-c", "while read line; do echo $line; done < /etc/hosts"])
        == 0
    )
    assert b"localhost" in capfdbinary.readouterr().out


def alone(living: Path, *command: str, **more: Any) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "tfenv.rootfs_run", "--rootfs", str(living), "--gpus", "none", *command]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -9)],
)
def test_who_ends_the_command_ends_what_it_runs(living: Path, number: int, code: int) -> None:
    if number == signal.SIGKILL and not with_us():
        pytest.skip("this machine has no setpriv")
    mark = str(700 + number + os.getpid() / 1e6)
    with alone(living, "--", "sh", "-c", f"sleep {mark} & echo on; sleep {mark}") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"on\n"
        assert runs(mark)
        process.send_signal(number)
        assert process.wait(60) == code and process.stderr.read() == b""
    for _ in range(100):
        if not runs(mark):
            break
        time.sleep(0.05)
    assert not runs(mark)


def test_a_host_whose_setpriv_is_old_or_missing_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_us() == []
    (tmp_path / "setpriv").write_text("#!/bin/sh\necho unrecognized option >&2; exit 1\n")
    (tmp_path / "setpriv").chmod(0o755)
    assert with_us() == []
    (tmp_path / "setpriv").write_text("#!/bin/sh\nexit 0\n")
    assert with_us() == ["setpriv", "--pdeathsig", "KILL", "--"]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--env", "A"], 2, "NAME=VALUE"),
        (["--env", "=A"], 2, "NAME=VALUE"),
        (["--bind", "kit"], 2, "FROM:/TO"),
        (["--bind", "kit:"], 2, "FROM:/TO"),
        (["--bind", "kit:/"], 2, "FROM:/TO"),
        (["--bind", "kit:relative"], 2, "FROM:/TO"),
        (["--gpus", "first"], 2, "auto, all, none"),
        (["--gpus", "0,0"], 2, "without repeats"),
        (["--config", "/none"], 2, "/none is missing: it says which image"),
    ],
)
def test_a_wrong_line_says_so(living: Path, argv: list[str], code: int, said: str) -> None:
    with alone(living, *argv, "--", "id") as process:
        _, err = process.communicate()
    assert process.returncode == code and said in err.decode() and b"Traceback" not in err


def test_a_reader_that_goes_away_is_no_traceback(living: Path) -> None:
    line = "while :; do echo a line that nobody reads; done"
    with alone(living, "--", "sh", "-c", line) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1 and process.stderr.read() == b""
