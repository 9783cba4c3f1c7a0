"""``tfenv verify --image``: images that are none of ours; and which GPUs an image is given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tfenv import cli, report, verify, verify_elsewhere, verify_foreign, verify_former
from tfenv.container import Ended, Output, Spec
from tfenv.engine import Completed, Engine
from tfenv.errors import NotReadyError, UsageError
from tfenv.verify_foreign import digest_of

DIGEST, OTHER = "sha256:" + "ab" * 32, "sha256:" + "cd" * 32


def events(suite: verify.Suite = "smoke", status: str = "pass", gpus: tuple[str, ...] = ("H",)) -> str:
    names = verify.plan_of(verify.pack(), suite).names
    start = {
        "event": "start",
        "suite": suite,
        "declared_sha256": verify.declared_hash(verify.FOREIGN),
        "suite_sha256": hashlib.sha256(verify.pack()).hexdigest(),
        "checks": [{"name": name} for name in names],
    }
    checks = [{"event": "check", "name": name, "status": status, "seconds": 1.0} for name in names]
    end = {"event": "end", "verdict": status, "facts": {"gpus": list(gpus)}}
    return "\n".join(json.dumps(event) for event in (start, *checks, end)) + "\n"


class Images:
    """An engine with one image, in whose containers the suite says what the test says."""

    def __init__(self, **told: Any) -> None:
        self.images = {"some/image:1": {"Id": DIGEST, **told}}
        self.specs: list[Spec] = []
        self.declared: list[dict[str, Any]] = []
        self.suite: verify.Suite = "smoke"
        self.networks = 0

    @contextmanager
    def connect(self, env: Mapping[str, str]) -> Iterator[Images]:
        yield self

    def image(self, name: str) -> dict[str, Any] | None:
        return self.images.get(name)

    @contextmanager
    def container(self, spec: Spec) -> Iterator[Images]:
        self.specs.append(spec)
        self.declared.append(json.loads((spec.binds[0].source / "declared.json").read_text()))
        yield self

    def output(self) -> Iterator[Output]:
        yield events(self.suite).encode(), b""

    @contextmanager
    def network(self, purpose: str) -> Iterator[str]:
        self.networks += 1
        yield "net"
        self.networks -= 1

    def wait(self) -> Ended:
        return Ended(0)

    def kill(self) -> None: ...


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Images:
    found = Images()
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)  # where there is no matrix.yaml
    monkeypatch.setattr("tfenv.container.connect", found.connect)
    monkeypatch.setattr(verify_foreign, "probe", lambda run, env: Engine())
    for module in (verify_foreign, verify_elsewhere, verify_former):
        monkeypatch.setattr(module, "gpu_here", lambda succeeds: True)
    for module in (verify_foreign, verify_elsewhere, verify_former):
        monkeypatch.setattr(module, "smi", lambda argv: Completed(0, "H, 580\n", ""))
    return found


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    suite = [] if "--suite" in arguments else ["--suite", "smoke"]
    code = cli.run(["verify", "--json", *suite, *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out.splitlines()[-1]) if out else None, err


def test_any_image_is_verified_and_nothing_is_declared_of_it(
    engine: Images, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = told(capsys, "--image", "some/image:1")
    assert (code, found["verdict"], found["cell"], found["digest"]) == (0, "pass", "some/image:1", DIGEST)
    (spec,), (declared,) = engine.specs, engine.declared
    assert (spec.image, spec.gpus, declared) == (DIGEST, True, {"format": 1})
    kept = report.read(Path(found["reports"]))
    assert (kept.image, kept.digest, kept.host.gpus) == ("some/image:1", DIGEST, ("H",))


def test_it_is_not_run_again_unless_told(engine: Images, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--image", "some/image:1")[0] == 0
    code, _, err = told(capsys, "--image", "some/image:1")
    assert (code, len(engine.specs)) == (0, 1) and "--again" in err
    assert told(capsys, "--image", "some/image:1", "--again")[0] == 0 and len(engine.specs) == 2
    told(capsys, "--image", "some/image:1", "--expect-gpus", "2")
    assert len(engine.specs) == 3, "it has passed on one GPU"
    assert engine.specs[-1].command[-2:] == ("--expect-gpus", "2")
    told(capsys, "--image", "some/image:1", "--expect-gpus", "1")
    assert len(engine.specs) == 3


def test_workers_of_any_image(engine: Images, capsys: pytest.CaptureFixture[str]) -> None:
    engine.suite = "workers"
    code, found, _ = told(capsys, "--image", "some/image:1", "--suite", "workers")
    assert (code, found["verdict"]) == (0, "pass")
    assert sorted(spec.aliases for spec in engine.specs) == [("worker-0",), ("worker-1",)]
    assert {spec.network for spec in engine.specs} == {"net"} and engine.networks == 0
    assert report.read(Path(found["reports"])).suite == "workers"


def test_a_kit_of_any_image(engine: Images, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found, _ = told(capsys, "--image", "some/image:1", "--kit", str(tmp_path / "kit"))
    assert code == 0 and engine.specs == []
    known = f"tfenv verify --image some/image:1 --suite smoke --digest {DIGEST} --lines lines"
    assert found["commands"][-1] == known and found["remarks"] == []
    assert json.loads((tmp_path / "kit/declared.json").read_text()) == {"format": 1}


def test_a_kit_of_an_image_that_is_not_here_leaves_a_place_for_its_digest(
    engine: Images,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> Any:
        code, data, _ = told(capsys, "--image", "no/such:1", "--kit", str(tmp_path / "kit"))
        assert code == 0 and "rootfs.json" in data["remarks"][0]
        return data["commands"][-1]

    unknown = "tfenv verify --image no/such:1 --suite smoke --digest DIGEST --lines lines"
    assert found() == unknown

    def gone(env: Any) -> Any:
        raise NotReadyError("no engine", remedy="start it")

    monkeypatch.setattr("tfenv.container.connect", gone)
    assert found() == unknown


def test_an_image_that_is_not_here(engine: Images, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "--image", "no/such:1", "--image", "some/image:1")
    assert code == 2 and "docker pull no/such:1" in err
    assert len(engine.specs) == 1, "the other one is verified all the same"


def test_it_gets_the_gpus_that_are_named(engine: Images, capsys: pytest.CaptureFixture[str]) -> None:
    for asked, wanted in (("2", "2"), ("0,1", "device=0,1"), ("device=1", "device=1"), ("all", True)):
        told(capsys, "--image", "some/image:1", "--again", "--gpus", asked)
        assert engine.specs[-1].gpus == wanted
    code, found, _ = told(capsys, "--image", "some/image:1", "--gpus", "none")
    assert (code, found["verdict"], engine.specs[-1].gpus) == (3, "unverified", False)


def test_lines_of_a_foreign_image_need_its_digest(
    engine: Images, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text(events())
    code, found, _ = told(capsys, "--image", "x", "--lines", str(path), "--digest", OTHER)
    assert (code, found["digest"], found["cell"]) == (0, OTHER, "x")
    code, found, _ = told(capsys, "--image", "x", "--lines", str(path))
    assert code == 2 and "--digest" in found["error"]["remedy"]


def test_an_unpacked_foreign_image(
    engine: Images, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root/usr").mkdir(parents=True)
    (tmp_path / "root.json").write_text(json.dumps({"manifest": OTHER, "config": {}}))
    monkeypatch.setattr("tfenv.rootfs_run.Rootfs.container", lambda self, spec: engine.container(spec))
    code, found, _ = told(capsys, "--image", "x", "--rootfs", str(tmp_path / "root"))
    assert (code, found["digest"], engine.declared) == (0, OTHER, [{"format": 1}])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["2.15", "--image", "x"], "cells are named, and --image"),
        (["--all", "--image", "x"], "cells are named, and --image"),
        (["--image", "x", "--image", "y", "--rootfs", "."], "holds one image"),
        (["--image", "x", "--lines", __file__, "--expect-gpus", "1"], "the lines are printed already"),
        (["--image", "x", "--lines", __file__, "--gpus", "2"], "the lines are printed already"),
        (["--image", "x", "--gpus", "0"], "'0' is none of"),
        (["--image", "x", "--expect-gpus", "-1"], "-1"),
    ],
)
def test_what_does_not_go_together(
    engine: Images, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, _, err = told(capsys, *arguments)
    assert code == 2 and said in err and engine.specs == []


def test_the_digest_of_an_image_whatever_the_store() -> None:
    assert digest_of("x", {"Id": DIGEST, "RepoDigests": [f"a@{DIGEST}"]}) == DIGEST, "containerd's store"
    assert digest_of("x", {"Id": DIGEST, "RepoDigests": [f"a@{OTHER}"]}) == OTHER, "the older store"
    assert digest_of("x", {"Id": DIGEST, "RepoDigests": []}) == DIGEST, "built here"
    with pytest.raises(UsageError, match="no image x here"):
        digest_of("x", None)
