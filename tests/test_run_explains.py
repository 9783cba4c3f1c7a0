"""``tfenv run`` says why a command failed, and of memory before it starts; output and exit code stay."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest
from tfenv.commands.run import _run
from tfenv.knowledge import memory
from tfenv.knowledge.memory import Held
from tfenv.knowledge.watching import KEPT, watch

CUDNN = "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0."


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_output_and_exit_code_stay(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(sh(f"echo out; echo '{CUDNN}' >&2; exit 7"), terminal=False) == 7
    out, err = capfd.readouterr()
    assert out == "out\n"
    assert err.startswith(f"{CUDNN}\n")
    assert "certain cause: cuDNN is older than TensorFlow was compiled for (cudnn-minor-too-old)" in err
    assert "because of: Loaded runtime CuDNN library" in err and "-> Take cuDNN 8.1.0" in err


@pytest.mark.parametrize("code", [0, 130, 143])
def test_nothing_is_said_where_nothing_failed(capfd: pytest.CaptureFixture[str], code: int) -> None:
    assert _run(sh(f"echo '{CUDNN}' >&2; exit {code}"), terminal=False) == code
    assert capfd.readouterr().err == f"{CUDNN}\n"


def test_nothing_is_said_where_no_rule_fits(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(sh("echo 'FlurbError: 5' >&2; exit 1"), terminal=False) == 1
    assert capfd.readouterr().err == "FlurbError: 5\n"


def test_an_exit_code_alone_tells(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(sh("exit 137"), terminal=False) == 137
    assert "likely cause: the program was killed because memory" in capfd.readouterr().err


def test_bytes_that_are_no_text_pass_through(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert watch(sh(r"printf '\377\000\033[2J' >&2"), terminal=False).code == 0
    assert capfdbinary.readouterr().err == b"\xff\x00\x1b[2J"


def test_the_end_of_a_long_output_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    ended = watch(sh(f"head -c {3 * KEPT} /dev/zero >&2; echo the end >&2"), terminal=False)
    assert ended.said.endswith(b"the end\n") and len(ended.said) == KEPT
    assert len(capfd.readouterr().err) == 3 * KEPT + len("the end\n")


def test_input_is_the_commands(tmp_path_factory: pytest.TempPathFactory) -> None:
    given = tmp_path_factory.mktemp("in") / "text"
    given.write_text("hello")
    code = "from tfenv.knowledge.watching import watch; watch(['cat'], terminal=False)"
    with given.open() as stdin:
        done = subprocess.run([sys.executable, "-c", code], stdin=stdin, capture_output=True, check=True)
    assert done.stdout == b"hello"


def test_a_command_that_was_killed() -> None:
    assert watch(sh("kill -9 $$"), terminal=False).code == 128 + 9


def test_there_is_no_such_program() -> None:
    with pytest.raises(FileNotFoundError):
        watch(["/nowhere/docker"], terminal=False)


def started(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_reaches_the_command(number: signal.Signals) -> None:
    script = f"trap 'echo got it; exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    code = (  # of a session without a terminal, whose signals the tests' own may ignore
        f"import signal, sys; signal.signal({int(number)}, signal.SIG_DFL)\n"
        "from tfenv.knowledge.watching import watch\n"
        f"sys.exit(watch(['sh', '-c', {script!r}], terminal=False).code)"
    )
    child = started(code)
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.stdout.read() == b"got it\n"
    assert child.wait(30) == 9


def on_terminal(argv: Sequence[str], keys: bytes = b"") -> tuple[str, int]:
    """What a person sees, who has a terminal of 99 columns, and the exit code."""
    import fcntl
    import struct
    import termios

    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "from tfenv.commands.run import _run\n"
        f"sys.exit(_run({list(argv)!r}, terminal=True))"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    seen = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
        if keys and b"ready" in seen:
            time.sleep(0.1)
            os.write(terminal, keys)
            keys = b""
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(status)


def test_on_a_terminal_the_command_has_one() -> None:
    seen, code = on_terminal(sh(f"test -t 0 && test -t 1 && test -t 2 && echo '{CUDNN}'; exit 7"))
    assert code == 7
    assert CUDNN in seen and "certain cause: cuDNN is older" in seen


def test_on_a_terminal_keys_are_the_commands() -> None:
    seen, code = on_terminal(sh("echo ready; read word; echo got $word; exit 0"), b"pear\n")
    assert code == 0 and "got pear" in seen


def test_on_a_terminal_ctrl_c_is_the_commands() -> None:
    seen, code = on_terminal(
        sh("trap 'echo stopped; exit 130' INT; echo ready; while :; do sleep 0.05; done"), b"\x03"
    )
    assert code == 130 and "stopped" in seen and "cause" not in seen


# memory


def test_gpus_that_others_hold() -> None:
    found = memory.held("0, 30000, 81559\n1, 3, 81559\n2, [N/A], 81559\nnonsense\n")
    assert found == (Held("0", 30000, 81559), Held("1", 3, 81559))
    [said] = memory.advice(found, (), None)
    assert (
        "GPU 0: 30000 of 81559 MiB" in said
        and "TF_FORCE_GPU_ALLOW_GROWTH=true" in said
        and "GPU 1" not in said
    )
    [said] = memory.advice(found, ("TF_FORCE_GPU_ALLOW_GROWTH=true",), None)
    assert "-e TF_FORCE_GPU_ALLOW_GROWTH" not in said


def test_nothing_is_said_of_free_gpus() -> None:
    assert memory.advice((Held("0", 500, 81559),), (), 64 << 30) == ()
    assert memory.advice((), (), None) == ()


def test_a_host_with_little_memory() -> None:
    [said] = memory.advice((), (), 3 << 30)
    assert "3072 MiB" in said and "137" in said


@pytest.mark.parametrize(
    ("gpus", "indexes"), [("all", "01"), ("device=1", "1"), ('"device=0,1"', "01"), ("2", "01")]
)
def test_the_gpus_that_are_asked_for(gpus: str, indexes: str) -> None:
    found = (Held("0", 1, 2), Held("1", 1, 2))
    assert "".join(gpu.index for gpu in memory.wanted(found, gpus)) == indexes


def test_memory_of_the_host() -> None:
    assert memory.available("MemTotal: 9 kB\nMemAvailable:   1024 kB\n") == 1 << 20
    assert memory.available("MemTotal: 9 kB\n") is None
    assert memory.available("MemAvailable: lots\n") is None
