from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from test_container import all_containers, built
from tfenv import cli
from tfenv.container import Ended, ProgramMissingError
from tfenv.engine import Completed, Engine
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.facts import Compiled, Library
from tfenv.model import Base, Cell, CudaSet, Lock, Row, Rule, Wheel
from tfenv.report import Host
from tfenv.verify import (
    Outcome,
    Plan,
    commands,
    declared_for,
    host_facts,
    judge,
    pack,
    plan_of,
    suite_hash,
    take,
    verify_image,
)
from tiny import run_of

DIGEST = "sha256:" + "ab" * 32


def start(*names):
    return {"event": "start", "checks": [{"name": name} for name in names]}


def check(name, status="pass", **more):
    return {"event": "check", "name": name, "status": status, "seconds": 1.0, **more}


def end(verdict):
    return {"event": "end", "verdict": verdict, "facts": {"tensorflow": "2.15.1"}}


def gpu(name="gpu", reason="no GPU"):
    return check(name, "not-run", reason=reason)


def plan(*names):
    return Plan(names=names or ("a",), accepted={"multi": ("one GPU",)}, limit=900)


GOOD = (start("a"), check("a"), end("pass"))


class Fake:
    """A container that plays events; ``pieces`` are (stdout, stderr)."""

    def __init__(self, *events, status=0, stderr=b"", oom=False, missing=(), before=None):
        text = "".join(e if isinstance(e, str) else json.dumps(e) + "\n" for e in events)
        data = text.encode()
        cuts = [data[i : i + 7] for i in range(0, len(data), 7)]
        self.pieces = [(cut, b"") for cut in cuts] + [(b"", stderr)]
        self.ended = Ended(status, oom)
        self.missing, self.before = missing, before
        self.specs, self.removed, self.files = [], 0, {}

    @contextmanager
    def start(self, spec):
        self.specs.append(spec)
        (bind,) = spec.binds
        self.files = {p.name: (p.read_bytes(), p.stat().st_mode) for p in bind.source.iterdir()}
        self.folder = bind.source
        self.folder_mode = bind.source.stat().st_mode
        if spec.entrypoint[0] in self.missing:
            raise ProgramMissingError(f"no {spec.entrypoint[0]}", remedy="r")
        try:
            yield self
        finally:
            self.removed += 1

    def output(self):
        if self.before:
            self.before()
        yield from self.pieces

    def wait(self):
        return self.ended

    def kill(self):
        self.pieces = []


def verify(fake, **more):
    given = {
        "digest": DIGEST,
        "host": Host(gpus=("H",)),
        "packed": b"zip",
        "clock": lambda: 1000.0,
        "gpus": True,
    }
    given["plan_of"] = lambda packed, suite: plan()
    return verify_image("tfenv:x", {"cell": "c"}, start=fake.start, **{**given, **more})


def test_no_pass_where_the_container_had_no_gpu():
    fake = Fake(start("a"), check("a"), end("pass"))
    report = verify(fake, plan_of=lambda *_: plan("a"), gpus=False)
    assert (report.verdict, report.exit_code, report.reason) == ("unverified", 3, "no GPU")


def test_a_pass_names_its_gpus_or_is_none():
    seen = {
        "event": "end",
        "verdict": "pass",
        "facts": {"gpus": ["H200"], "driver": "Kernel Module  580.1  x"},
    }
    made = verify(Fake(start("a"), check("a"), seen), host=Host(cpu="C"))
    assert (made.verdict, made.host) == ("pass", Host(cpu="C", gpus=("H200",), driver="580.1"))
    made = verify(Fake(start("a"), check("a"), end("pass")), host=Host())
    assert (made.verdict, made.exit_code, made.reason) == ("unverified", 3, "no GPU")


def test_a_clock_that_is_set_back_makes_no_negative_duration():
    times = iter((5_000_000_000.0, 0.0))
    assert verify(Fake(*GOOD), clock=lambda: next(times)).seconds == 0.0


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((start("a"), check("a"), start("a"), check("a"), end("pass")), "more than once"),
        ((start("b"), check("b"), end("unverified"), *GOOD), "more than once"),
        ((start("a"), start("a"), check("a"), end("pass")), "more than once"),
        ((*GOOD, end("pass")), "more than once"),
        ((*GOOD, check("b")), "went on after its end"),
        ((*GOOD, start("a")), "more than once"),
        ((start("a"), check("a"), check("a"), end("pass")), "more than one result came of a"),
        ((start("a"), gpu("multi", "one GPU"), check("multi"), check("a"), end("pass")), "of multi"),
    ],
)
def test_parts_of_two_runs_are_no_run(events, said):
    report = verify(Fake(*events), plan_of=lambda *_: plan("a"))
    assert report.verdict == "fail" and said in report.checks[-1].findings[0].message


@pytest.mark.parametrize("severity", ["error", "fatal", None, 5, ["info"]])
def test_a_check_with_an_error_has_not_passed_whatever_it_calls_itself(severity):
    found = check("a", findings=[{"severity": severity, "message": "m"}])
    report = verify(Fake(start("a"), found, end("pass")))
    assert report.verdict == "fail" and report.checks[0].findings[0].severity == "error"
    for harmless in ("warning", "info"):
        found = check("a", findings=[{"severity": harmless, "message": "m"}])
        assert verify(Fake(start("a"), found, end("pass"))).verdict == "pass"


@pytest.mark.parametrize("facts", ['[["a", 1], [1, 2]]', '"x"', "5"])
def test_facts_are_an_object(facts):
    line = json.dumps(check("a"))[:-1] + f', "facts": {facts}}}'
    assert take(outcome := Outcome(), line) is None and outcome.strays


def test_what_is_kept_can_be_written_as_json():
    line = '{"event": "check", "name": "a", "status": "pass", "facts": {"x": [NaN, 1e999, "\\ud800", %s]}}'
    made = take(Outcome(), line % ("9" * 400))
    assert made.facts == {"x": ["nan", "inf", "?", "inf"]}


def test_events_without_end_are_not_kept_without_end(monkeypatch):
    monkeypatch.setattr("tfenv.verify.protocol._MOST", 1000)
    outcome = Outcome()
    for number in range(100):
        take(outcome, json.dumps(check(f"c{number}")))
    assert 0 < len(outcome.checks) < 20 and outcome.strays


@pytest.mark.parametrize("seconds", ["NaN", "1e999", "-1", "9" * 400])
def test_no_duration_is_no_event(seconds):
    line = json.dumps(check("a")).replace('"seconds": ', '"seconds": ' + seconds + ', "x": ')
    assert take(outcome := Outcome(), line) is None and outcome.checks == [] and outcome.strays


def test_a_pass():
    seen = []
    fake = Fake(start("a", "b"), check("a"), check("b"), end("pass"))
    report = verify(fake, on_check=lambda c: seen.append(c.name), plan_of=lambda *_: plan("a", "b"))
    assert (report.verdict, report.exit_code, report.reason) == ("pass", 0, "")
    assert seen == ["a", "b"]
    assert report.facts == {"tensorflow": "2.15.1"}
    assert (report.digest, report.started) == (DIGEST, 1_000_000)
    assert fake.removed == 1 and not fake.folder.exists()


def test_how_the_container_is_run():
    fake = Fake(check("a"), end("pass"))
    verify(fake, gpus=True, timeout=60, suite="full")
    (spec,) = fake.specs
    assert spec.network == "none" and spec.read_only and spec.shm_size == "2g" and spec.gpus
    assert "/tmp" in spec.tmpfs and spec.user == ""
    assert spec.binds[0].target == "/tfenv" and spec.binds[0].read_only
    line = " ".join((*spec.entrypoint, *spec.command))
    assert line == (
        "timeout -k 10 60 python -B /tfenv/verify.pyz --declared /tfenv/declared.json --suite full"
    )
    assert fake.files["verify.pyz"][0] == b"zip"
    assert json.loads(fake.files["declared.json"][0]) == {"cell": "c"}
    # The image's user is another one than the caller.
    assert all(mode & 0o044 == 0o044 for _, mode in fake.files.values())
    assert fake.folder_mode & 0o055 == 0o055


@pytest.mark.parametrize(
    ("events", "status", "verdict", "reason"),
    [
        (GOOD, 0, "pass", ""),
        # The suite says pass although a check was not run: never a pass.
        ([start("a"), gpu("a"), end("unverified")], 3, "unverified", "no GPU"),
        ([start("a"), gpu("a"), end("pass")], 0, "unverified", "no GPU"),
        ([end("pass")], 0, "unverified", "the suite did not plan a"),
        ([start(), end("pass")], 0, "unverified", "the suite did not plan a"),
        ([check("a"), end("pass")], 0, "unverified", "the suite did not plan a"),
        ([start("b"), check("b"), end("pass")], 0, "unverified", "the suite did not plan a; the suite has"),
        ([start("a"), check("a"), end("unverified")], 3, "unverified", "the suite does not say why"),
        ([check("a", "fail"), end("fail")], 1, "fail", ""),
        ([check("a", "fail"), end("pass")], 0, "fail", ""),
        ([check("a"), end("fail")], 1, "fail", ""),
        ([check("a"), end("pass")], 1, "fail", ""),
        ([check("a"), end("unverified")], 0, "fail", ""),
        ([check("a"), end("splendid")], 0, "fail", ""),
        ([check("a", "splendid"), end("pass")], 0, "fail", ""),
        ([start("a", "b"), check("a"), end("pass")], 0, "fail", ""),
        ([check("a")], 0, "fail", ""),
        ([], 0, "fail", ""),
        ([start("a"), check("a"), json.dumps(end("pass"))[:-5]], 0, "fail", ""),
    ],
)
def test_verdicts_fail_closed(events, status, verdict, reason):
    report = verify(Fake(*events, status=status))
    assert report.verdict == verdict
    assert report.reason.startswith(reason) and bool(report.reason) == bool(reason)
    if verdict == "fail":
        assert any(c.status == "fail" for c in report.checks)


@pytest.mark.parametrize(
    ("not_run", "verdict", "reason"),
    [
        (gpu("multi", "one GPU"), "pass", ""),
        (gpu("multi", "two GPUs"), "unverified", "multi was not run: two GPUs"),
        (gpu("multi"), "unverified", "no GPU"),
        (gpu("other", "one GPU"), "unverified", "other was not run: one GPU"),
        (gpu("other", "no gpu"), "unverified", "other was not run: no gpu"),
        (gpu("other", ""), "unverified", "other was not run: no reason is given"),
    ],
)
def test_only_an_accepted_reason_lets_a_check_be_not_run(not_run, verdict, reason):
    names = ("a", not_run["name"])
    fake = Fake(start(*names), check("a"), not_run, end("pass"))
    report = verify(fake, plan_of=lambda *_: plan(*names))
    assert (report.verdict, report.reason) == (verdict, reason)


def test_nothing_but_accepted_reasons_is_no_pass():
    fake = Fake(start("multi"), gpu("multi", "one GPU"), end("pass"))
    report = verify(fake, plan_of=lambda *_: plan("multi"))
    assert (report.verdict, report.reason) == ("unverified", "no check was run")


def test_the_plan_is_what_the_hosts_own_suite_lists(tmp_path):
    full, smoke = plan_of(pack(), "full"), plan_of(pack(), "smoke")
    assert set(smoke.names) < set(full.names) and {"tensorflow", "gpu_visible"} <= set(smoke.names)
    assert full.accepted["multi_gpu"] == ("one GPU",)
    accepted = {name for name, reasons in full.accepted.items() if reasons}
    assert accepted == {"multi_gpu", "pip_check", "tensorboard"}
    assert plan_of(pack(), "workers").names == ("gpu_visible", "multi_worker")
    assert 0 < smoke.limit < full.limit


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit('broken')\n",
        "print('hi')\n",
        "print('{}')\n",
        """print('{"limit": 9}')\n""",
        """print('{"name": "a"}')\nprint('{"limit": 9}')\n""",
    ],
)
def test_a_suite_that_lists_nothing_is_damaged(tmp_path, text):
    with pytest.raises(IntegrityError) as caught:
        plan_of(pack(suite(tmp_path, text)), "full")
    assert "install tfenv again" in caught.value.remedy


def test_a_suite_that_does_not_end_its_list_is_told_and_not_waited_for(tmp_path, monkeypatch):
    def hangs(*_, **__):
        raise subprocess.TimeoutExpired("x", 60)

    monkeypatch.setattr("subprocess.run", hangs)
    with pytest.raises(IntegrityError, match="no answer within 60 s"):
        plan_of(pack(), "full")


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        (Fake(check("a"), status=139), "exit status 139"),
        (Fake(check("a"), status=124), "did not end within 50 s"),
        (Fake(check("a"), status=137), "or was killed"),
        (Fake(check("a"), status=137, oom=True), "out of memory"),
    ],
)
def test_a_container_that_dies_is_a_fail_with_its_last_words(fake, message):
    fake.pieces.append((b"", b"F tensorflow: last words\n"))
    report = verify(fake, timeout=50)
    assert report.verdict == "fail"
    (finding,) = report.checks[-1].findings
    assert message in finding.message and "last words" in finding.evidence and finding.remedy


def test_other_output_on_stdout_is_no_event():
    fake = Fake("hello\n", "[1]\n", '"x"\n', "{}\n", '{"event": "check"}\n', *GOOD)
    assert verify(fake).verdict == "pass"


def test_the_last_line_may_lack_its_end():
    assert verify(Fake(start("a"), check("a"), json.dumps(end("pass")))).verdict == "pass"


def test_an_image_without_timeout_or_python():
    fake = Fake(*GOOD, missing=("timeout", "python"))
    assert verify(fake).verdict == "pass"
    assert fake.specs[-1].entrypoint == ("python3",)
    report = verify(Fake(missing=("timeout", "python", "python3")))
    assert report.verdict == "fail"
    assert "no python3" in report.checks[0].findings[0].evidence


def test_timeout_without_python_tries_python3():
    fake = Fake(status=127, stderr=b"timeout: failed to run command 'python'")
    report = verify(fake)
    assert [spec.command[2] for spec in fake.specs[:2]] == ["900", "900"]
    assert [spec.command[3] for spec in fake.specs[:2]] == ["python", "python3"]
    assert len(fake.specs) == len(commands(1, "smoke")) == fake.removed
    assert report.verdict == "fail" and "failed to run" in report.checks[0].findings[0].evidence


def test_a_container_that_hangs_is_killed_from_outside(monkeypatch):
    monkeypatch.setattr("tfenv.verify.running._GRACE", 0)
    killed = threading.Event()
    fake = Fake(check("a"), end("pass"), status=137, before=lambda: killed.wait(20))
    fake.kill = lambda: (fake.pieces.clear(), killed.set())
    report = verify(fake, timeout=0)
    assert killed.is_set() and report.verdict == "fail"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_removes_the_container_and_the_folder(number):
    fake = Fake(check("a"), before=lambda: os.kill(os.getpid(), number))
    with pytest.raises(KeyboardInterrupt), cli.stoppable():
        verify(fake)
    assert fake.removed == 1 and not fake.folder.exists()


def test_no_image_and_a_distant_engine():
    with pytest.raises(UsageError, match="no image tfenv:x"):
        verify(Fake(), digest=None)
    with pytest.raises(NotReadyError, match="tcp://there"):
        verify(Fake(), endpoint="tcp://there:2376")


def test_judge_keeps_a_reason_that_the_suite_gave():
    outcome = Outcome()
    old = {"event": "end", "verdict": "unverified", "facts": {}, "reason": "needs Python 3.7"}
    assert take(outcome, json.dumps(old)) is None
    verdict, outcome = judge(outcome, Ended(3), "", 1, plan())
    assert (verdict, outcome.reason) == ("unverified", "needs Python 3.7")


def suite(folder: Path, text="print('hi')\n"):
    (folder / "tfenv_verify/__pycache__").mkdir(parents=True)
    (folder / "__main__.py").write_text(text)
    (folder / "tfenv_verify/b.py").write_text("")
    (folder / "tfenv_verify/a.py").write_text("")
    (folder / "tfenv_verify/__pycache__/a.cpython-311.pyc").write_bytes(b"x")
    return folder


def test_the_same_sources_give_the_same_zipapp(tmp_path):
    one, two = suite(tmp_path / "1"), suite(tmp_path / "2")
    os.utime(two / "tfenv_verify/a.py", (1, 1))
    (two / "tfenv_verify/a.py").chmod(0o600)
    assert pack(one) == pack(two)
    assert zipfile.ZipFile(io.BytesIO(pack(one))).namelist() == [
        "__main__.py",
        "tfenv_verify/a.py",
        "tfenv_verify/b.py",
    ]
    assert pack(suite(tmp_path / "3", "print('ho')\n")) != pack(one)
    (two / "other").mkdir()
    (two / "other/c.py").write_text("")  # another program's, which no verdict depends on
    assert pack(one) == pack(two)
    with pytest.raises(IntegrityError):
        pack(tmp_path)


def test_the_projects_suite_packs():
    names = zipfile.ZipFile(io.BytesIO(pack())).namelist()
    assert "__main__.py" in names and "tfenv_verify/main.py" in names


def test_the_suite_hash_covers_code_suite_and_declaration_but_not_the_name():
    base = suite_hash(b"a", "smoke", {"cuda": "12.2", "image": "x"})
    assert base == suite_hash(b"a", "smoke", {"image": "y", "cuda": "12.2"})
    assert base != suite_hash(b"b", "smoke", {"cuda": "12.2"})
    assert base != suite_hash(b"a", "full", {"cuda": "12.2"})
    assert base != suite_hash(b"a", "smoke", {"cuda": "12.3"})


CELL = Cell(
    row=Row(
        tensorflow="2.15.1",
        pythons=("3.11",),
        bases=("debian12",),
        default_base="debian12",
        default_python="3.11",
        exclude_newer="2024-03-20T00:00:00Z",
        requirements=("tensorflow==2.15.1",),
    ),
    python="3.11",
    base=Base(name="debian12", kind="debian", suite="bookworm", pythons=(("3.11", ()),), epoch=1),
    cuda_set=CudaSet(cuda="12.2", cudnn="8.9", epoch=1),
    cuda_from="wheels",
)
LOCK = Lock(
    cell=CELL.name,
    platform="linux/amd64",
    epoch=1,
    cuda_epoch=1,
    base_epoch=1,
    base_image="",
    base_digest="",
    requirements=(),
    exclude_newer="2024-03-20T00:00:00Z",
    wheel_platform="x86_64-manylinux_2_36",
    interpreter=None,
    cuda_from="wheels",
    require_cuda="cuda>=12.1",
    template="t",
    uv="0.8",
    suite="bookworm",
    debian_packages=(),
    debian_locked_at="2026-01-01T00:00:00Z",
    debian=(),
    wheels=(
        Wheel(
            name="nvidia-cudnn-cu12",
            version="8.9.4.25",
            filename="x.whl",
            size=1,
            sha256="0",
            layer="cuda",
        ),
    ),
    without=(Rule(what="nvidia-nccl-cu12", why="linked in"),),
    keep=(Rule(what="*.h", why="needed"),),
)
COMPILED = Compiled(
    tensorflow="2.15.1",
    released="2024-03-08T00:00:00Z",
    pythons=("3.11",),
    cuda="12.2",
    cudnn="8.9.4",
    nccl="2.16.5",
    nccl_how="linked",
    sass=(),
    ptx=(),
    source={},
)


def library(name, wheel):
    soname = f"lib{name}.so.8"
    return Library(name=name, soname=soname, wheel=wheel, opened_by="tf", why="w", source="s")


CUDNN, NCCL = library("cudnn", "nvidia-cudnn-cu12"), library("nccl", "nvidia-nccl-cu12")


def test_the_declaration(snapshot):
    declared = declared_for(CELL, LOCK, COMPILED, [CUDNN, NCCL], image="tfenv:x", environment={"A": "b"})
    assert declared == snapshot
    assert json.loads(json.dumps(declared)) == declared


def test_a_library_whose_wheel_is_not_locked():
    with pytest.raises(IntegrityError, match="lacks nvidia-cufft-cu12") as caught:
        declared_for(CELL, LOCK, COMPILED, [CUDNN, library("cufft", "nvidia-cufft-cu12")])
    assert "tfenv lock" in caught.value.remedy
    from_base = replace(LOCK, cuda_from="base", wheels=())
    declared = declared_for(CELL, from_base, COMPILED, [CUDNN])
    assert [entry["version"] for entry in declared["libraries"]] == [""]
    assert declared["cuda_folders"] == ["/usr/local/cuda", "/usr/lib/x86_64-linux-gnu"]
    assert (declared["ptxas"], declared["absent"], declared["unused"]) == ("", [], [])


def wheel(name, version):
    return Wheel(name=name, version=version, filename=f"{name}.whl", size=1, sha256="0", layer="cuda")


TOOLS = ("nvidia-cuda-nvcc-cu12==12.2.140", "nvidia-cuda-cupti-cu12==12.2.142")
UBUNTU = replace(
    CELL,
    base=Base(name="ubuntu22.04", kind="nvidia", glibc="2.35", provided_pythons=("3.11",)),
    cuda_set=CudaSet(cuda="12.2", cudnn="8.9", epoch=1, tools=TOOLS),
    cuda_from="base",
)


def test_beside_an_images_own_cuda_only_the_tools_may_be():
    lock = replace(LOCK, cuda_from="base", wheels=tuple(wheel(*tool.split("==")) for tool in TOOLS))
    declared = declared_for(UBUNTU, lock, COMPILED, [CUDNN, library("cupti", "nvidia-cuda-cupti-cu12")])
    assert declared["cuda_folders"][2:] == [
        "/opt/tfenv/cuda/nvidia/cuda_cupti",
        "/opt/tfenv/cuda/nvidia/cuda_nvcc",
    ]
    assert declared["ptxas"] == "12.2.140"
    assert {entry["name"]: entry["version"] for entry in declared["libraries"]} == {
        "cudnn": "",
        "cupti": "12.2.142",
    }
    more = replace(lock, wheels=(*lock.wheels, wheel("nvidia-cublas-cu12", "12.2.5.6")))
    assert declared_for(UBUNTU, more, COMPILED, [CUDNN])["cuda_folders"] == declared["cuda_folders"]


def test_an_image_without_cupti_is_declared_so():
    lock = replace(LOCK, cuda_from="base", wheels=(wheel("nvidia-cuda-nvcc-cu12", "12.2.140"),))
    declared = declared_for(UBUNTU, lock, COMPILED, [CUDNN, library("cupti", "nvidia-cuda-cupti-cu12")])
    assert [entry["what"] for entry in declared["absent"]] == ["libcupti.so.8"]
    assert [entry["name"] for entry in declared["libraries"]] == ["cudnn"]


def test_the_runtime_of_an_image_is_unused_beside_the_wheels():
    cell = replace(UBUNTU, cuda_from="wheels")
    declared = declared_for(cell, LOCK, COMPILED, [CUDNN])
    assert [entry["what"] for entry in declared["unused"]] == ["/usr/local/cuda-*/libcudart.so*"]
    assert declared["cuda_folders"] == ["/opt/tfenv/cuda"]
    assert declared_for(CELL, LOCK, COMPILED, [CUDNN])["unused"] == []


def test_a_library_that_can_be_missed_is_declared_where_it_is_locked():
    lock = replace(LOCK, wheels=(*LOCK.wheels, wheel("nvidia-nvshmem-cu12", "3.2.5")))
    names = [entry["name"] for entry in declared_for(CELL, lock, COMPILED, [CUDNN])["libraries"]]
    assert names == ["cudnn", "nvshmem"]


def test_a_report_on_a_stand_in_says_so():
    assert verify(Fake(*GOOD), stand_in="nvidia/cuda:x").stand_in == "nvidia/cuda:x"
    assert verify(Fake(*GOOD)).stand_in == ""


ENGINE = Engine(kernel="6.1", server_version="26.1.5")
CPU = "processor: 0\nmodel name\t: A CPU\nmodel name\t: A CPU\n"


def facts(run, gpus):
    return host_facts(run, ENGINE, gpus=gpus, cpuinfo=lambda: CPU, machine=lambda: "x86_64")


def test_facts_of_a_host_with_and_without_gpus():
    smi = run_of({"--query-gpu": "NVIDIA H200, 580.95.05\nNVIDIA H200, 580.95.05\n"})
    plain = Host(kernel="6.1", machine="x86_64", cpu="A CPU", docker="26.1.5")
    both = replace(plain, gpus=("NVIDIA H200", "NVIDIA H200"), driver="580.95.05")
    assert facts(smi, True) == both
    assert facts(smi, False) == plain
    assert facts(run_of({"--query-gpu": Completed(9, "no, driver", "")}), True) == plain
    assert facts(run_of({}), True) == plain


@pytest.mark.engine
def test_a_real_container_is_verified_and_removed(tmp_path):
    events = (start("a"), check("a"), end("pass"))
    say = "".join(json.dumps(event) + "\n" for event in events)
    before = all_containers()
    with built(tmp_path, say=say) as (name, digest, containers):
        report = verify_image(
            name,
            {},
            digest=containers.inspect(name),
            host=Host(),
            start=containers.container,
            plan_of=lambda *_: plan(),
        )
    assert (report.verdict, report.reason, report.digest) == ("unverified", "no GPU", digest)
    assert [c.name for c in report.checks] == ["a"]
    assert all_containers() <= before
