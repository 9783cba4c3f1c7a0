from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import small
from small import CELL, Place
from tfenv.commands._places import MODELS
from tfenv.container import Ended, Spec
from tfenv.engine import Completed
from tfenv.load import events_of
from tfenv.load.running import Collected
from tfenv.resources import verifier_dir
from tfenv.rootfs_run import Rootfs

Tell = Callable[..., tuple[int, str, str]]
LINES = Path(__file__).parent / "fixtures/load/stress.jsonl"
ROW = {
    "event": "row",
    "model": "resnet50",
    "precision": "tf32",
    "xla": False,
    "gpus": 1,
    "reduction": "",
    "batch": 256,
    "unit": "images/s",
    "devices": [{"name": "NVIDIA H200"}],
}
START = {"event": "start", "kind": "bench", "started": 1700000000000, "driver": "580", "told": {}}
END = {"event": "end", "why": "", "seconds": 9}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("tfenv.load.session.gpu_here", lambda _succeeds: False)
    return small.place(tmp_path, monkeypatch)


def bench_lines(where: Path, *speeds: float) -> Path:
    rows = [
        {**ROW, "status": "ok", "throughput": s, "low": s, "high": s, "xla": bool(n)}
        for n, s in enumerate(speeds)
    ]
    path = where / "bench.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in [START, *rows, END]))
    return path


@pytest.mark.parametrize("command", ["stress", "bench"])
def test_without_a_gpu_it_is_not_run_and_that_is_no_pass(here: Place, tell: Tell, command: str) -> None:
    code, out, err = tell(command, CELL)
    assert (code, out) == (3, "") and "not run: no GPU" in err
    code, out, _ = tell(command, CELL, "--json")
    assert code == 3 and json.loads(out)["error"]["exit_code"] == 3


def test_lines_of_elsewhere_become_the_committed_report(here: Place, tell: Tell, tmp_path: Path) -> None:
    assert tell("stress", CELL, "--lines", str(LINES))[0] == 2, "no digest is recorded yet"
    assert tell("stress", CELL, "--lines", str(LINES), "--digest", "latest")[0] == 2
    named = ["--digest", "sha256:" + "ef" * 32, "--reports", str(tmp_path / "r")]
    assert json.loads(tell("stress", CELL, "--lines", str(LINES), *named, "--json")[1])["digest"] == named[1]
    tell("build", "--record", CELL)
    code, out, err = tell("stress", CELL, "--lines", str(LINES), "--reports", str(tmp_path / "r"), "--json")
    told = json.loads(out)
    assert (code, told["verdict"]) == (1, "fail") and "gave wrong products" in err
    folder = Path(told["reports"])
    assert folder.parent == tmp_path / "r" and folder.name.startswith("stress-")
    assert json.loads((folder / "stress.json").read_text())["digest"] == told["digest"]


def test_a_bench_ends_with_advice_also_from_other_cells(here: Place, tell: Tell, tmp_path: Path) -> None:
    tell("build", "--record", CELL)
    reports = here.workspace.folder(here.cell) / "reports"
    lines = bench_lines(tmp_path, 1000.0, 3000.0)
    code, out, _ = tell("bench", CELL, "--lines", str(lines), "--reports", str(reports))
    assert code == 0
    assert "* resnet50: switch on float32 (TF32) + XLA: 3000 images/s, 3.00x" in out
    (bench,) = reports.glob("bench-*/bench.json")
    other = here.workspace.images / "2.99-other/reports/bench-x"
    other.mkdir(parents=True)
    data = json.loads(bench.read_text())
    (other / "bench.json").write_text(json.dumps({**data, "cell": "2.99-other"}))
    slower = bench_lines(tmp_path, 1000.0, 1500.0)
    code, out, _ = tell("bench", CELL, "--lines", str(slower), "--reports", str(tmp_path / "r"))
    assert "* resnet50: 2.99-other was faster on this GPU: 3000 images/s" in out


def test_lines_of_a_run_without_a_container_are_what_the_container_is_compared_with(
    here: Place, tell: Tell, tmp_path: Path
) -> None:
    tell("build", "--record", CELL)
    reports = here.workspace.folder(here.cell) / "reports"
    bare = bench_lines(tmp_path, 1000.0, 3000.0)
    assert tell("bench", CELL, "--lines", str(bare), "--bare", "--reports", str(reports))[0] == 0
    (bench,) = reports.glob("bench-*/bench.json")
    assert json.loads(bench.read_text())["host"]["docker"] == "no container"
    contained = bench_lines(tmp_path, 990.0, 2970.0)
    _, out, _ = tell("bench", CELL, "--lines", str(contained), "--reports", str(tmp_path / "r"))
    assert "in the container it has 99.0% of the speed without one" in out
    code, _, err = tell("bench", CELL, "--bare")
    assert code == 2 and "--lines" in err


def test_a_bench_that_measured_nothing_fails(here: Place, tell: Tell, tmp_path: Path) -> None:
    tell("build", "--record", CELL)
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(START) + "\n")
    assert tell("bench", CELL, "--lines", str(path), "--reports", str(tmp_path))[0] == 1
    path.write_text(json.dumps(START) + "\n" + json.dumps({**END, "why": "no GPU"}) + "\n")
    assert tell("bench", CELL, "--lines", str(path), "--reports", str(tmp_path))[0] == 3


def test_an_unpacked_image_is_run_with_its_own_digest(
    here: Place, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "usr").mkdir(parents=True)
    digest = "sha256:" + "cd" * 32
    (tmp_path / "root.json").write_text(json.dumps({"manifest": digest, "config": {}}))
    specs: list[Spec] = []

    class Fake:
        def output(self) -> Iterator[tuple[bytes, bytes]]:
            yield LINES.read_bytes(), b""

        def wait(self) -> Ended:
            return Ended(0)

        def kill(self) -> None: ...

    @contextmanager
    def container(self: Rootfs, spec: Spec) -> Iterator[Any]:
        specs.append(spec)
        yield Fake()

    monkeypatch.setattr(Rootfs, "container", container)
    line = ["stress", CELL, "--minutes", "2", "--rootfs", str(root), "--gpus", "all", "--json"]
    code, out, _ = tell(*line, "--reports", str(tmp_path / "r"))
    assert (code, json.loads(out)["digest"]) == (1, digest)
    assert specs[0].gpus is True and specs[0].command[1:] == (
        "/tfenv/load.pyz",
        "stress",
        "--minutes",
        "2.0",
        "--size",
        "0",
    )
    asked: list[list[str]] = []

    def smi(argv: list[str]) -> Completed:
        asked.append(argv)
        return Completed(0, "1\n3\n", "")

    monkeypatch.setattr("tfenv.load.session.smi", smi)
    tell(*line[:-3], "--gpus", "device=3,1", "--reports", str(tmp_path / "r"))
    assert specs[1].gpus == "device=3,1" and asked[-1][-2:] == ["-i", "3,1"]
    code, _, err = tell(*line[:-3], "--gpus", "3", "--reports", str(tmp_path / "r"))
    assert code == 4 and "this host does not have the GPUs 0,1,2" in err and len(specs) == 2


def collected(monkeypatch: pytest.MonkeyPatch, seen: list[tuple[Any, ...]]) -> None:
    """What is run is noted, and says the lines of a stress."""

    def run_load(start: Any, spec: Spec, packed: bytes, arguments: Any, **more: Any) -> Collected:
        seen.append((start, spec, tuple(arguments)))
        return Collected(events=tuple(events_of(LINES.read_text())), ended=Ended(0), stderr="")

    monkeypatch.setattr("tfenv.load.session.run_load", run_load)


def test_an_image_of_the_engine_is_run_by_its_digest(
    here: Place, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    collected(monkeypatch, seen)
    monkeypatch.setattr("tfenv.load.session.gpu_here", lambda _succeeds: True)
    assert tell("stress", CELL)[0] == 2, "it is not built yet"
    tell("build", CELL)
    monkeypatch.setattr(small.Images, "container", lambda self, spec: None, raising=False)
    code, out, _ = tell("stress", CELL, "--json", "--reports", str(tmp_path / "r"))
    assert code == 1
    _, spec, arguments = seen[0]
    assert spec.image == json.loads(out)["digest"] and spec.gpus
    assert arguments == ("stress", "--minutes", "5.0", "--size", "0")
    tell("bench", CELL, "--gpus", "0,1", "--reports", str(tmp_path / "r"))
    assert seen[1][1].gpus == "device=0,1"


def test_without_a_container_it_is_said_so(
    here: Place, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    collected(monkeypatch, seen)
    tell("build", "--record", CELL)
    line = ["stress", CELL, "--python", sys.executable, "--gpus", "all", "--json", "--reports", str(tmp_path)]
    told = json.loads(tell(*line)[1])
    data = json.loads((Path(told["reports"]) / "stress.json").read_text())
    assert data["host"]["docker"] == "no container" and len(seen) == 1
    monkeypatch.setattr("tfenv.load.session.smi", lambda argv: Completed(0, "0\n1\n", ""))
    tell(*line[:-4], "2", "--reports", str(tmp_path))
    assert seen[1][1].gpus == "device=0,1"


@pytest.mark.parametrize("command", ["stress", "bench"])
def test_gpus_are_asked_for_as_of_verify(here: Place, tell: Tell, command: str) -> None:
    code, _, err = tell(command, CELL, "--gpus", "0")
    assert code == 2 and "'0' is none of auto, all, none, a number" in err
    code, _, err = tell(command, CELL, "--lines", str(LINES), "--gpus", "2")
    assert code == 2 and "the lines are printed already" in err
    assert tell(command, CELL, "--gpus", "none")[0] == 3


@pytest.mark.parametrize(
    "line",
    [
        *(["stress", "--minutes", wrong] for wrong in ("nan", "NaN", "inf", "1e999", "-1", "0")),
        *(["bench", "--seconds", wrong] for wrong in ("nan", "inf", "-inf", "1e999", "1e300", "604801", "9")),
        *(["bench", "--models", wrong] for wrong in ("", "foo", "resnet50,,transformer", "--x", "a b")),
    ],
)
def test_what_no_run_can_be_told_is_refused_at_once(here: Place, tell: Tell, line: list[str]) -> None:
    code, out, err = tell(line[0], CELL, "--lines", str(LINES), f"{line[1]}={line[2]}")
    assert (code, out) == (2, "") and "Invalid value" in err and "Traceback" not in err


def test_models_are_those_of_the_program(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[Any, ...]] = []
    collected(monkeypatch, seen)
    tell("build", "--record", CELL)
    line = ["bench", CELL, "--python", sys.executable, "--gpus", "all", "--reports", str(tmp_path)]
    tell(*line, "--models", " transformer,resnet50,transformer")
    assert seen[0][2][:3] == ("bench", "--models", "transformer,resnet50")
    text = (verifier_dir() / "tfenv_load/models.py").read_text()
    assert f'MODELS: dict[str, Any] = {{"{MODELS[0]}": ResNet50, "{MODELS[1]}": Transformer}}' in text


@pytest.mark.parametrize("command", ["stress", "bench"])
def test_a_folder_for_no_reports_is_found_before_the_run(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    seen: list[tuple[Any, ...]] = []
    collected(monkeypatch, seen)
    tell("build", "--record", CELL)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file/x", Path("/proc/none/x")):
        line = [command, CELL, "--python", sys.executable, "--gpus", "all", "--reports", str(folder)]
        assert tell(*line)[0] == 4 and not seen


def test_an_image_that_nobody_names_is_found_before_the_run(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    collected(monkeypatch, seen)
    assert tell("stress", CELL, "--python", sys.executable, "--gpus", "all")[0] == 2
    assert not seen


@pytest.mark.parametrize(
    ("command", "first", "said", "remedy"),
    [
        ("stress", None, "holds no line of load.pyz", "stderr"),
        ("bench", None, "holds no line of load.pyz", "stderr"),
        ("stress", {"event": "sample", "gpu": 0}, "holds not the first line of a run", "stderr"),
        (
            "stress",
            {"event": "start", "suite_sha256": "0"},
            "lines of verify",
            "tfenv verify",
        ),
        (
            "bench",
            {"event": "start", "suite_sha256": "0"},
            "lines of verify",
            "tfenv verify",
        ),
        ("bench", {"event": "start", "kind": "stress"}, "lines of stress", "type: tfenv stress CELL"),
        ("stress", {"event": "start"}, "lines of another program", "give those of stress"),
        ("bench", {**START, "python": "2.7.18"}, "this was measured with Python 2.7.18", "tfenv list"),
    ],
)
def test_lines_of_something_else_are_named_and_refused(
    here: Place, tell: Tell, tmp_path: Path, command: str, first: Any, said: str, remedy: str
) -> None:
    tell("build", "--record", CELL)
    path = tmp_path / "lines"
    path.write_text(json.dumps(first) + "\n" if first else "bash: python: command not found\n")
    code, out, _ = tell(command, CELL, "--lines", str(path), "--reports", str(tmp_path / "r"), "--json")
    error = json.loads(out)["error"]
    assert (code, error["exit_code"]) == (2, 2) and said in error["message"] and remedy in error["remedy"]
    assert not list((tmp_path / "r").iterdir()), "no report is made of it"


@pytest.mark.parametrize("command", ["stress", "bench"])
def test_a_digest_that_nothing_takes_is_refused(here: Place, tell: Tell, command: str) -> None:
    code, _, err = tell(command, CELL, "--digest", "sha256:" + "ef" * 32)
    assert code == 2 and "--digest is for --lines and --python" in err
    code, _, err = tell(command, CELL, "--digest", "latest")
    assert code == 2 and "latest is not a digest" in err


def test_two_runs_in_a_file_are_refused(here: Place, tell: Tell, tmp_path: Path) -> None:
    tell("build", "--record", CELL)
    path = bench_lines(tmp_path, 1000.0)
    path.write_text(path.read_text() * 2)
    code, _, err = tell("bench", CELL, "--lines", str(path))
    assert code == 2 and "holds more than one run" in err


@pytest.mark.parametrize(("started", "believed"), [(1_700_000_000_000, True), (9_000_000_000_000, False)])
def test_a_run_begins_when_its_lines_say_if_that_can_be(
    here: Place, tell: Tell, tmp_path: Path, started: int, believed: bool
) -> None:
    tell("build", "--record", CELL)
    path = bench_lines(tmp_path, 1000.0)
    path.write_text(path.read_text().replace(str(START["started"]), str(started)))
    os.utime(path, (1_650_000_000, 1_650_000_000))
    code, out, err = tell("bench", CELL, "--lines", str(path), "--reports", str(tmp_path / "r"), "--json")
    (made,) = (tmp_path / "r").glob("*/bench.json")
    assert code == 0 and ("is not believed" in err) == (not believed), out
    wanted = started if believed else (1_650_000_000 - END["seconds"]) * 1000
    assert json.loads(made.read_text())["run"]["started"] == wanted
