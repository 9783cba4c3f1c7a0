"""TensorBoard starts, finds a run that TensorFlow wrote, answers on loopback, and ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from typing import Any, Callable

from ..context import Context
from ..distributions import installed, version_of
from ..places import scratch, site_folders
from ..protocol import NotRunError, Report, say
from ..runner import suite_command

ABSENT = "TensorBoard is not in this image"
_START_SECONDS, _FIND_SECONDS, _END_SECONDS = 60.0, 20.0, 15.0
_ADDRESS = re.compile(r"http://(127\.0\.0\.1|localhost):(\d+)/")
_RUN = "tfenv"


def check(context: Context, report: Report) -> None:
    """TensorBoard starts, answers on loopback and ends."""
    version = version_of("tensorboard", installed(site_folders()))
    report.facts["version"] = version
    if not version:
        if "tensorboard" not in context.declared.packages:
            raise NotRunError(ABSENT)
        report.error(
            "TensorBoard is in the lock, but not installed", remedy="rebuild the image from its lock"
        )
        return
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="tfenv-board-") as folder:
        say("tensorboard: TensorFlow writes a run")
        write(os.path.join(folder, _RUN))
        say("tensorboard: it starts")
        judge(serve(folder), report)


def write(folder: str) -> None:
    """One number, as training writes them."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # nothing here needs a GPU
    import tensorflow as tf

    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=1)
    writer.close()


def serve(folder: str) -> dict[str, Any]:
    """Start it, ask for its runs, end it.

    ``address``; ``runs`` or why there is no answer in ``trouble``; ``code`` (None if it had to be killed);
    ``output``.
    """
    environ = dict(os.environ, TMPDIR=folder, PYTHONUNBUFFERED="1")
    options = ("--logdir", folder, "--host", "127.0.0.1", "--port", "0")
    process = subprocess.Popen(
        [suite_command()[0], "-B", "-m", "tensorboard.main", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
    )
    output = _Output(process)
    found: dict[str, Any] = {"address": "", "runs": None, "trouble": "", "code": None}
    try:
        match = until(lambda: _ADDRESS.search(output.text()), _START_SECONDS, process)
        if match:
            found["address"] = match.group(0)
            ask = f"http://127.0.0.1:{match.group(2)}/data/runs"
            until(lambda: _runs(ask, found), _FIND_SECONDS, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            found["code"] = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    found["output"] = output.text()[-4000:]
    return found


def until(tell: Callable[[], Any], seconds: float, process: subprocess.Popen[bytes]) -> Any:
    """What ``tell`` says once it says something; None if it does not in time, or the process has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = tell()
        if told:
            return told
        if process.poll() is not None:
            return tell()
        time.sleep(0.2)
    return None


def _runs(address: str, found: dict[str, Any]) -> bool:
    try:
        # No proxy for loopback, whatever the environment says.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=10) as answer:
            found["runs"] = json.loads(answer.read().decode("utf-8"))
    except (OSError, ValueError) as error:
        found["trouble"] = str(error)
    return _RUN in (found["runs"] or ())


class _Output:
    """What a process has written so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._parts: list[bytes] = []
        self._stream: Any = process.stdout
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            self._parts.append(line)

    def text(self) -> str:
        """All of it."""
        return b"".join(self._parts).decode("utf-8", "replace")


def judge(found: dict[str, Any], report: Report) -> None:
    """It tells an address, has the run, and ends when it is told to."""
    if not found["address"]:
        ended = "" if found["code"] is None else f" (it ended with {found['code']})"
        report.error(
            f"TensorBoard does not start{ended}",
            found["output"],
            "TensorBoard needs pkg_resources: lock setuptools below 82 with it"
            if "pkg_resources" in found["output"]
            else "the last lines of its output, in the evidence, say why",
        )
        return
    if found["runs"] is None:
        report.error(
            f"TensorBoard says it is at {found['address']}, but does not answer there",
            "\n".join((found["trouble"], found["output"])),
            "look for a firewall or a network namespace without loopback",
        )
    elif _RUN not in found["runs"]:
        report.error(
            f"TensorBoard does not find the run that TensorFlow wrote: {found['runs']}",
            found["output"],
            "TensorBoard and TensorFlow are of releases that do not go together: compare them with the lock",
        )
    if found["code"] is None:
        report.warning(
            "TensorBoard does not end on SIGTERM, and was killed", found["output"], "docker stop -t 1"
        )
