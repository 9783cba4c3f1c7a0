"""Verdicts without an engine: the command, and unpacked images."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from test_verify_former import PASS
from test_verify_lines import DIGEST, lines
from tfenv import cli, report, verify, verify_elsewhere, verify_former
from tfenv.container import Ended, Spec
from tfenv.engine import Completed
from tfenv.errors import NotReadyError, UsageError
from tfenv.report import Report
from tfenv.rootfs_run import Driver, Rootfs
from tfenv.unpacked import Unpacked
from tfenv.verify_elsewhere import Asked, in_rootfs, whole_digest


def test_an_unpacked_image_is_verified_by_its_own_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    specs: list[Spec] = []
    text = lines(code=verify.pack())

    class Fake:
        def output(self) -> Iterator[tuple[bytes, bytes]]:
            yield text.encode() + b"\n", b""

        def wait(self) -> Ended:
            return Ended(0)

        def kill(self) -> None: ...

    @contextmanager
    def container(self: Rootfs, spec: Spec) -> Iterator[Any]:
        specs.append(spec)
        yield Fake()

    monkeypatch.setattr(Rootfs, "container", container)
    monkeypatch.setattr(verify_elsewhere, "find_driver", Driver)
    monkeypatch.setattr(
        verify_elsewhere, "run_command", lambda argv: Completed(0, "NVIDIA H200, 580.1\n", "")
    )
    found = in_rootfs(Unpacked(folder=tmp_path, digest=DIGEST), {}, Asked(suite="smoke", gpus="all"))
    assert (found.digest, found.host.gpus, found.host.driver) == (DIGEST, ("NVIDIA H200",), "580.1")
    assert specs[0].gpus and found.host.docker == "rootfs" and found.verdict == "pass"
    with pytest.raises(NotReadyError, match="does not have the GPUs 0,1"):
        in_rootfs(Unpacked(folder=tmp_path, digest=DIGEST), {}, Asked(suite="smoke", gpus="2"))
    assert len(specs) == 1


def test_nvidia_smi_is_found_in_nvidias_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvidia-smi").write_text("")
    monkeypatch.setattr(verify_elsewhere, "find_driver", lambda: Driver(folder=tmp_path))
    monkeypatch.setattr(verify_elsewhere, "run_command", lambda argv: Completed(0, argv[0], ""))
    assert verify_elsewhere.smi(["nvidia-smi", "-L"]).stdout == str(tmp_path / "bin/nvidia-smi")
    assert verify_elsewhere.smi(["other"]).stdout == "other"


def test_a_digest_is_given_in_full() -> None:
    assert whole_digest(DIGEST) == DIGEST
    with pytest.raises(UsageError, match="is not a digest"):
        whole_digest("sha256:ab")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> small.Place:
    monkeypatch.setattr("tfenv.pipeline.declared", lambda cell, lock, image: {"cell": cell.name})
    made = small.place(tmp_path, monkeypatch)
    assert cli.run(["build", "--record", small.CELL]) == 0
    return made


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    code = cli.run(["verify", small.CELL, "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_verify_takes_lines_of_elsewhere(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text(lines(code=verify.pack(), cell=small.CELL))
    code, found, _ = told(capsys, "--lines", str(path), "--reports", str(tmp_path / "r"))
    assert (code, found["verdict"]) == (0, "pass")
    kept = report.read(Path(found["reports"]))
    assert (kept.image, kept.digest) == (small.CELL, found["digest"]) and kept.host.gpus == ("H",)
    code, found, _ = told(capsys, "--lines", str(path), "--digest", DIGEST)
    assert (code, found["digest"]) == (0, DIGEST)


def test_verify_of_an_unpacked_image(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root/usr").mkdir(parents=True)
    (tmp_path / "root.json").write_text(json.dumps({"manifest": DIGEST, "config": {}}))
    monkeypatch.setattr(
        verify_elsewhere, "in_rootfs", lambda image, declared, asked, **more: replace(PASS, image="x")
    )
    code, found, _ = told(capsys, "--rootfs", str(tmp_path / "root"))
    assert (code, report.read(Path(found["reports"])).image) == (0, small.CELL)


def test_verify_takes_a_former_pass_on_the_same_gpus_unless_told_again(
    here: small.Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def check(cell: Any, lock: Any, image: Any, host: Any, **more: Any) -> tuple[Report, Path]:
        ran.append(image.id)
        suite_hash = verify.suite_hash(verify.pack(), "full", {"cell": cell.name})
        found = replace(PASS, digest=image.id, suite_hash=suite_hash)
        return found, report.write(found, host.store.root / "reports")

    monkeypatch.setattr("tfenv.pipeline.check", check)
    monkeypatch.setattr(verify_former, "gpu_here", lambda succeeds: True)
    monkeypatch.setattr(verify_former, "smi", lambda argv: Completed(0, "H, 580\nH, 580\n", ""))
    assert told(capsys)[0] == 0 and len(ran) == 1
    code, found, err = told(capsys)
    assert (code, found["verdict"], len(ran)) == (0, "pass", 1) and "--again" in err
    assert told(capsys, "--again")[0] == 0 and len(ran) == 2
    assert told(capsys, "--gpus", "none")[0] == 0 and len(ran) == 3
    monkeypatch.setattr(verify_former, "smi", lambda argv: Completed(0, "H, 581\nH, 581\n", ""))
    assert told(capsys)[0] == 0 and len(ran) == 4


@pytest.mark.parametrize(("suite", "count"), [("full", 2), ("workers", 3)])
def test_a_kit_is_what_a_host_without_tfenv_needs(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, suite: str, count: int
) -> None:
    folder = tmp_path / "kit"
    code, found, _ = told(capsys, "--kit", str(folder), "--suite", suite)
    assert code == 0 and len(found["commands"]) == count
    assert (folder / "verify.pyz").read_bytes() == verify.pack()
    assert json.loads((folder / "declared.json").read_text()) == {"cell": small.CELL}
    *typed, last = found["commands"]
    assert last == f"tfenv verify {small.CELL} --suite {suite} --lines lines"
    assert found["bring"] == ["lines", "lines.1"][: count - 1] and found["remarks"] == []
    for index, line in enumerate(reversed(typed)):
        assert line.startswith("python3 -m tfenv.rootfs_run --rootfs rootfs --bind kit:/tfenv -- python -B ")
        assert f"--suite {suite}" in line
        if suite == "workers":
            assert f"--cluster 127.0.0.1:29400,127.0.0.1:29408 --worker {index} > lines" in line
            assert line.endswith("&") == (index > 0)
    assert told(capsys, small.CELL, "--all", "--kit", str(folder))[0] == 2


def test_a_kit_says_what_to_bring_and_what_to_put_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small.place(tmp_path, monkeypatch)
    monkeypatch.setattr("tfenv.pipeline.declared", lambda cell, lock, image: {"cell": cell.name})
    line = ["verify", small.CELL, "--kit", str(tmp_path / "kit"), "--suite"]
    assert cli.run([*line, "workers"]) == 0
    *_, brought, remark, last = capsys.readouterr().out.splitlines()
    assert brought == "# bring lines and lines.1, and type here:"
    assert remark == '# DIGEST is what rootfs.json there says as "manifest"', "no digest is recorded"
    assert last == f"tfenv verify {small.CELL} --suite workers --digest DIGEST --lines lines"
    assert cli.run(["build", "--record", small.CELL]) == 0
    capsys.readouterr()
    assert cli.run([*line, "smoke"]) == 0
    *_, brought, last = capsys.readouterr().out.splitlines()
    assert (brought, last) == (
        "# bring lines, and type here:",
        f"tfenv verify {small.CELL} --suite smoke --lines lines",
    )


def test_a_kit_gives_the_gpus_that_were_asked_for(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def first(*options: str) -> str:
        return str(told(capsys, "--kit", str(tmp_path / "kit"), *options)[1]["commands"][0])

    assert "--bind kit:/tfenv --gpus device=0,1 -- python" in first("--gpus", "0,1")
    assert "--bind kit:/tfenv --gpus 2 -- python" in first("--gpus", "2")
    assert "--bind kit:/tfenv --gpus none -- python" in first("--gpus", "none")
    assert "--bind kit:/tfenv -- python" in first("--gpus", "all")
    assert "--suite full --expect-gpus 2 > lines" in first("--expect-gpus", "2")


def test_what_a_kit_prints_is_judged(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, path = tmp_path / "kit", tmp_path / "lines"
    assert told(capsys, "--kit", str(folder), "--suite", "workers")[0] == 0
    arguments = ["--suite", "workers", "--cluster", "127.0.0.1:29400,127.0.0.1:29408", "--worker", "0"]
    declared = ["--declared", str(folder / "declared.json")]
    done = subprocess.run(
        [sys.executable, str(folder / "verify.pyz"), *declared, *arguments],
        capture_output=True,
        env={"CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    path.write_bytes(done.stdout)
    code, found, _ = told(capsys, "--lines", str(path), "--digest", DIGEST)
    assert (code, found["verdict"], report.read(Path(found["reports"])).suite) == (3, "unverified", "workers")


def test_lines_are_of_the_suite_that_was_named(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text(lines(code=verify.pack(), cell=small.CELL))
    code, _, err = told(capsys, "--lines", str(path))
    assert code == 0 and "what is judged is the suite smoke" in err
    assert cli.run(["verify", small.CELL, "--lines", str(path)]) == 0
    assert f"{small.CELL}: verified (by the suite smoke)\n" in capsys.readouterr().out
    path.write_text(lines(code=verify.pack(), cell=small.CELL, suite="full"))
    assert cli.run(["verify", small.CELL, "--lines", str(path)]) == 0
    assert f"{small.CELL}: verified\n" in capsys.readouterr().out
    path.write_text(lines(code=verify.pack(), cell=small.CELL))
    assert told(capsys, "--lines", str(path), "--suite", "smoke")[0] == 0
    code, found, _ = told(capsys, "--lines", str(path), "--suite", "full")
    assert code == 2 and "is of the suite smoke, not full" in found["error"]["message"]


def test_one_way_to_a_verdict_is_named(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text("")
    ways = [["--lines", str(path)], ["--rootfs", str(tmp_path)], ["--kit", str(tmp_path / "kit")]]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        code, found, _ = told(capsys, *ways[one], *ways[other])
        assert code == 2 and "three ways" in found["error"]["message"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--digest", "latest"], "latest is not a digest"),
        (["--digest", DIGEST], "--digest is for --lines"),
        (["--digest", DIGEST, "--kit", "kit"], "--digest is for --lines"),
        (["--digest", DIGEST, "--rootfs", "/"], "--digest is for --lines"),
        (["--gpus", "none", "--expect-gpus", "1"], "--gpus none gives 0, and --expect-gpus wants 1"),
        (["--gpus", "2", "--expect-gpus", "1"], "--gpus 2 gives 2, and --expect-gpus wants 1"),
        (["--gpus", "0,1", "--expect-gpus", "3", "--kit", "kit"], "gives 2, and --expect-gpus wants 3"),
    ],
)
def test_what_would_be_passed_over_or_cannot_be_is_refused_before_the_run(
    here: small.Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.setattr("tfenv.pipeline.check", lambda *_, **__: pytest.fail("the suite was run"))
    code, found, _ = told(capsys, *options)
    assert code == 2 and said in found["error"]["message"]


def test_without_gpus_is_what_to_type(here: small.Place, capsys: pytest.CaptureFixture[str]) -> None:
    _, found, _ = told(capsys, "--gpus", "none", "--expect-gpus", "1")
    assert found["error"]["remedy"] == "type it without --gpus none, or with --expect-gpus 0"


def test_a_folder_for_no_reports_is_found_before_the_checks(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.pipeline.check", lambda *_, **__: pytest.fail("the suite was run"))
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file/x", Path("/proc/none/x")):
        assert told(capsys, "--reports", str(folder))[0] == 4


def test_a_kit_that_cannot_be_written_is_not_half_there(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kit"
    assert told(capsys, "--kit", str(folder))[0] == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(verify.kit, "pack", lambda: b"another")
    monkeypatch.setattr("os.fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert told(capsys, "--kit", str(folder))[0] == 4
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
