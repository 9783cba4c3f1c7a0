"""`tfenv facts`: everything over an index that runs here, an installed folder, and the files it writes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from audit_fakes import IndexServer, fatbin, library, members, ptx, sass, serving, stored, wheel, wheel_name
from tfenv import cli, facts, resources
from tfenv.audit import datafile, deep, run
from tfenv.audit.listing import IndexFile, wheels_of
from tfenv.audit.survey import Surveyor
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.memo import Memo

CODE = fatbin(sass(50), sass(75), sass(80), ptx("sm_80", "8.1"))
GENERATED = fatbin(sass(50), sass(75), ptx("sm_80", "7.1", "Cast_GPU_DT_BOOL_DT_INT8_kernel"))
NCCL = fatbin(sass(75, "_Z10ncclKernelv"))
FUNCTIONS = b"GetCudnnDsoHandle\0GetCublasLtDsoHandle\0GetNcclDsoHandle\0NCCL version 2.16.5\0"
LIBRARY = "tensorflow/libtensorflow_cc.so.2"


SMALLEST = 1 << 14


@pytest.fixture(autouse=True)
def smaller_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "_LEAST", SMALLEST)


def large(data: bytes) -> bytes:
    return data + b"\0" * SMALLEST


def gpu_wheel(version: str, code: bytes = CODE + NCCL, **changes: Any) -> bytes:
    made = library(
        code, GENERATED, instructions=stored(8, 9, 4), strings=FUNCTIONS, runpath="/x/nvidia/cudnn/lib"
    )
    return wheel({**members(version, **changes), LIBRARY: large(made)})


class Here:
    """An index, a cache and a facts file of this test's own."""

    def __init__(self, folder: Path, index: IndexServer) -> None:
        self.folder, self.index = folder, index
        self.file = folder / "facts" / "tensorflow.json"
        self.said: list[str] = []

    def host(self, memo: str = "memo", **options: Any) -> run.Host:
        def listing() -> tuple[IndexFile, ...]:
            return wheels_of("tensorflow", self.index.simple(), "2.4")

        surveyor = Surveyor(
            memo=Memo(self.folder / memo), session=requests.Session, scratch=self.folder, workers=3, **options
        )
        return run.Host(listing=listing, surveyor=surveyor, note=self.said.append)

    def audit(
        self, *releases: str, libraries: bool = False, **options: Any
    ) -> tuple[dict[str, Any], str, int]:
        return run.audit(self.file, releases, libraries=libraries, on=self.host(**options))

    def facts(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text()))

    def bytes(self) -> list[bytes]:
        return [self.file.read_bytes(), datafile.wheels_file(self.file).read_bytes()]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with serving() as index:
        index.files = {
            wheel_name("2.15.1", "3.10"): gpu_wheel("2.15.1"),
            wheel_name("2.15.1", "3.11"): gpu_wheel("2.15.1"),
            wheel_name("2.16.0rc0", "3.12"): gpu_wheel("2.16.0rc0"),
        }
        yield Here(tmp_path, index)


# --- without the libraries -------------------------------------------------------------------------


def test_the_facts_of_every_release(here: Here) -> None:
    data, text, code = here.audit()
    assert (code, data["releases"], data["wheels"], data["read_now"], data["changed"]) == (0, 2, 3, 3, True)
    assert "2 releases, 3 wheels: 3 read now" in text
    found = here.facts()
    assert list(found) == ["2.15.1", "2.16.0rc0"]
    entry = found["2.15.1"]
    assert set(entry["source"]) == set(entry) - {"source"}
    assert (entry["cuda"], entry["cudnn"], entry["pythons"]) == ("12.2", "8", ["3.10", "3.11"])
    assert entry["nccl"] == {"version": "2.16.5", "how": ""}
    assert "sass" not in entry
    assert (entry["prerelease"], found["2.16.0rc0"]["prerelease"]) == (False, True)
    assert (
        data["bytes_by_wheel"][wheel_name("2.15.1", "3.10")]
        < len(here.index.files[wheel_name("2.15.1", "3.10")]) + 99
    )


def test_a_second_run_reads_nothing_and_changes_nothing(here: Here) -> None:
    here.audit(libraries=True)
    before, asked = here.bytes(), len(here.index.asked)
    data, text, code = here.audit(libraries=True)
    assert (code, data["read_now"], data["bytes_read_now"], data["changed"]) == (0, 0, 0, False)
    assert "unchanged" in text
    assert len(here.index.asked) == asked
    assert here.bytes() == before


def test_another_cache_gives_the_same_files(here: Here) -> None:
    here.audit(libraries=True)
    before = here.bytes()
    here.file.unlink()
    datafile.wheels_file(here.file).unlink()
    here.audit(libraries=True, memo="other")
    assert here.bytes() == before


def test_nothing_of_the_index_is_written(here: Here) -> None:
    here.audit(libraries=True)
    assert not [text for text in here.bytes() if b"127.0.0.1" in text or b"://" in text]


def test_where_the_pythons_differ(here: Here) -> None:
    name = wheel_name("2.15.1", "3.10")
    here.index.files[name] = gpu_wheel("2.15.1", requires="Requires-Dist: h5py<3.15")
    here.audit()
    entry = datafile.load(here.file)["2.15.1"]
    other, same = entry["wheels"]
    assert other["differs"] == {"requires": ["h5py<3.15"]}
    assert "differs" not in same
    assert entry["read"]["requires"] == ['nvidia-cudnn-cu12==8.9.4.25; extra == "and-cuda"']


def test_wheels_without_cuda_do_not_count(here: Here) -> None:
    info = "build_info = x([('is_cuda_build', False)])"
    for name in (wheel_name("2.15.1", "3.11"), wheel_name("2.16.0rc0", "3.12")):
        here.index.files[name] = wheel(members(name.split("-")[1], build_info=info))
    here.audit()
    assert list(here.facts()) == ["2.15.1"]
    assert here.facts()["2.15.1"]["pythons"] == ["3.10"]
    assert datafile.load(here.file)["2.16.0rc0"]["cpu_only"] == [wheel_name("2.16.0rc0", "3.12")]
    assert run.compare(here.file, (), on=here.host())[2] == 0


def test_build_info_that_says_nothing_of_cuda(here: Here) -> None:
    name = wheel_name("2.16.0rc0", "3.12")
    here.index.files[name] = wheel(
        members(
            "2.16.0rc0",
            build_info="build_info = x([('is_cuda_build', True)])",
            cudnn="#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 0\n",
            cuda_config='#define TF_CUDA_VERSION "12.2.1"\n#define TF_CUDNN_VERSION "8"\n',
            nccl=None,
        )
    )
    here.audit("2.16.0rc0")
    found = here.facts()["2.16.0rc0"]
    assert (found["cuda"], found["cudnn"], found["nccl"]["version"]) == ("12.2.1", "8.10.0", "")
    assert "CUDNN_MAJOR" in found["source"]["cudnn"]


def test_places_that_contradict_each_other_are_not_believed(here: Here) -> None:
    here.index.files[wheel_name("2.16.0rc0", "3.12")] = wheel(
        members("2.16.0rc0", cuda="#define CUDA_VERSION 11080\n")
    )
    data, text, code = here.audit()
    assert code == 1
    assert "contradict" in text
    assert data["unread"][0]["what"] == "2.16.0rc0"
    assert list(here.facts()) == ["2.15.1"]


def test_only_the_releases_that_are_named(here: Here) -> None:
    here.audit()
    here.index.yanked = dict.fromkeys(here.index.files, "broken")
    here.audit("2.15.1")
    assert [entry["yanked"] for entry in here.facts().values()] == ["broken", ""]
    with pytest.raises(UsageError, match=r"2\.99"):
        here.audit("2.99")


# --- what cannot be read ---------------------------------------------------------------------------


def test_a_release_of_which_a_wheel_cannot_be_read_stays_as_it_was(here: Here) -> None:
    name = wheel_name("2.15.1", "3.10")
    good = here.index.files[name]
    here.index.files[name] = good[:100] + b"\0" * 20 + good[120:]
    data, text, code = here.audit()
    assert code == 1
    assert [entry["what"] for entry in data["unread"]] == [name]
    assert f"could not be read: {name}" in text
    assert list(here.facts()) == ["2.16.0rc0"]
    here.index.files[name] = good
    assert here.audit()[2] == 0
    assert list(here.facts()) == ["2.15.1", "2.16.0rc0"]


def test_a_server_that_sends_whole_files(here: Here) -> None:
    here.index.ranges = False
    data, text, code = here.audit("2.16.0rc0")
    assert code == 1
    assert "whole files" in text
    assert "--whole" in data["unread"][0]["remedy"]
    data, _, code = here.audit("2.16.0rc0", whole=True)
    name = wheel_name("2.16.0rc0", "3.12")
    assert (code, data["bytes_by_wheel"][name]) == (0, len(here.index.files[name]))
    assert not list(here.folder.glob("*.part"))


def test_a_whole_wheel_is_proven_by_its_hash(here: Here) -> None:
    here.index.ranges = False
    name = wheel_name("2.16.0rc0", "3.12")
    listing = here.index.listing()
    good = here.index.files[name]
    here.index.files[name] = good[:60] + bytes([good[60] ^ 1]) + good[61:]
    here.index.listing = lambda: listing  # type: ignore[method-assign]
    _, text, code = here.audit("2.16.0rc0", whole=True)
    assert code == 1
    assert "sha256 differs" in text


def test_a_wheel_that_changes_while_it_is_read(here: Here) -> None:
    name = wheel_name("2.16.0rc0", "3.12")
    padding = {"padding": random.Random(1).randbytes(300_000)}
    here.index.files[name] = wheel({**members("2.16.0rc0"), **padding, LIBRARY: b"x"})
    here.index.etags = True

    def swap(_handler: Any, _name: str) -> bool:
        if len(here.index.asked) == 2:
            here.index.files[name] = here.index.files[name][::-1]
        return False

    here.index.spoil = swap
    _, text, code = here.audit("2.16.0rc0")
    assert code == 1
    assert "replaced" in text


def test_a_server_that_gives_nothing(here: Here) -> None:
    def gone(handler: Any, _name: str) -> bool:
        handler.send_error(404)
        return True

    here.index.spoil = gone
    data, _, code = here.audit()
    assert code == 4
    assert len(data["unread"]) == 3
    assert here.facts() == {}


def test_an_index_that_is_down(here: Here) -> None:
    here.audit()
    before = here.bytes()
    host = here.host()

    def down() -> tuple[IndexFile, ...]:
        raise NotReadyError("the package index cannot be read", remedy="check the network")

    down_host = run.Host(listing=down, surveyor=host.surveyor, note=host.note)
    with pytest.raises(NotReadyError):
        run.audit(here.file, (), on=down_host)
    assert here.bytes() == before


def test_an_interrupted_run_goes_on(here: Here) -> None:
    class StopError(Exception):
        pass

    host = here.host()
    count = 0

    def stop_after_one(_text: str) -> None:
        nonlocal count
        count += 1
        raise StopError

    with pytest.raises(StopError):
        run.audit(
            here.file, (), on=run.Host(listing=host.listing, surveyor=host.surveyor, note=stop_after_one)
        )
    assert not here.file.exists()
    data, _, code = here.audit()
    assert code == 0
    assert data["read_now"] < 3
    assert len(here.facts()) == 2


# --- with the libraries ----------------------------------------------------------------------------


def test_the_facts_of_the_libraries(here: Here) -> None:
    here.audit(libraries=True)
    entry = here.facts()["2.15.1"]
    assert set(entry["source"]) == set(entry) - {"source"}
    assert entry["cudnn"] == "8.9.4"
    assert entry["nccl"] == {"version": "2.16.5", "how": "linked", "sass": ["7.5"]}
    assert entry["opens"] == ["libcublasLt.so.12", "libcudnn.so.8"]
    assert entry["runpath"] == {"libtensorflow_cc.so.2": ["cudnn"]}
    assert entry["sass"] == ["5.0", "7.5"]
    assert [(p["from"], p["isa"]) for p in entry["ptx"]] == [("8.0", "7.1"), ("9.0", "8.1")]
    kept = datafile.load(here.file)["2.15.1"]["deep"]
    assert kept["wheel"] == wheel_name("2.15.1", "3.11")
    assert LIBRARY in kept["libraries"]


def test_nccl_from_outside(here: Here) -> None:
    made = library(CODE, GENERATED, strings=FUNCTIONS.replace(b"NCCL version 2.16.5", b""))
    here.index.files = {
        wheel_name("2.21.0", "3.13"): wheel({**members("2.21.0"), LIBRARY: large(made)}),
        wheel_name("2.21.1", "3.13"): wheel({**members("2.21.1"), LIBRARY: large(library(CODE))}),
    }
    here.audit(libraries=True)
    found = here.facts()
    assert found["2.21.0"]["nccl"] == {"version": "2.16.5", "how": "loaded"}
    assert "libnccl.so.2" in found["2.21.0"]["opens"]
    assert found["2.21.1"]["nccl"]["how"] == ""
    assert found["2.21.0"]["cudnn"] == "8"


def test_what_is_known_of_the_libraries_survives_a_run_without_them(here: Here) -> None:
    here.audit(libraries=True)
    before = here.bytes()
    here.audit(memo="other")
    assert here.bytes() == before
    name = wheel_name("2.15.1", "3.11")
    here.index.files[name] = gpu_wheel("2.15.1", requires="Requires-Dist: other")
    here.audit(memo="other")
    assert "sass" not in here.facts()["2.15.1"]  # it was of another wheel
    assert "sass" in here.facts()["2.16.0rc0"]


def test_a_library_that_is_damaged(here: Here) -> None:
    here.index.files = {
        wheel_name("2.15.1", "3.11"): wheel({**members("2.15.1"), LIBRARY: b"\0" * SMALLEST}),
        wheel_name("2.16.1", "3.11"): wheel(members("2.16.1")),
    }
    data, text, code = here.audit(libraries=True)
    assert code == 1
    assert "no 64-bit ELF library" in text
    assert "no library is large enough" in text
    assert len(data["unread"]) == 2
    assert here.facts()["2.15.1"]["cuda"] == "12.2"  # what its small files say is still true


# --- --check ---------------------------------------------------------------------------------------


def test_check_says_what_the_file_has_not(here: Here) -> None:
    here.audit()
    before, asked = here.bytes(), len(here.index.asked)
    assert run.compare(here.file, (), on=here.host())[2] == 0
    new, gone = wheel_name("2.16.1", "3.12"), wheel_name("2.15.1", "3.10")
    here.index.files[new] = here.index.files.pop(gone)
    here.index.yanked[wheel_name("2.15.1", "3.11")] = "bad"
    data, text, code = run.compare(here.file, (), on=here.host())
    assert code == 1
    assert (data["new"], data["gone"]) == ([new], [gone])
    assert f"new on the index: {new}" in text
    assert "yanked is 'bad', the file says ''" in text
    assert run.compare(here.file, ("2.16.0rc0",), on=here.host())[2] == 0
    assert here.bytes() == before
    assert len(here.index.asked) == asked


def test_check_without_a_file(here: Here) -> None:
    data, _, code = run.compare(here.file, (), on=here.host())
    assert (code, len(data["new"])) == (1, 3)
    assert not here.file.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 99, "releases": {}}'])
def test_a_file_of_another_kind(here: Here, text: str) -> None:
    path = datafile.wheels_file(here.file)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(UsageError, match="no audit"):
        here.audit()


# --- installed, and the command --------------------------------------------------------------------


def install(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def test_an_installed_tensorflow_says_the_same(here: Here) -> None:
    here.audit(libraries=True)
    made = library(
        CODE + NCCL, GENERATED, instructions=stored(8, 9, 4), strings=FUNCTIONS, runpath="/x/nvidia/cudnn/lib"
    )
    root = here.folder / "image/usr/lib/python3/dist-packages"
    install(root, {**members("2.15.1"), LIBRARY: large(made)})
    data, text = run.of_folder(here.folder / "image", libraries=True)
    entry = here.facts()["2.15.1"]
    for key in ("cuda", "cudnn", "nccl", "opens", "sass", "ptx", "unusable"):
        assert data[key] == entry[key]
    assert text.startswith("tensorflow 2.15.1\n")
    assert "sass" not in run.of_folder(root)[0]
    (root / LIBRARY).write_bytes(b"\0" * SMALLEST)
    with pytest.raises(IntegrityError):
        run.of_folder(root, libraries=True)


def test_the_command_with_the_users_own_index(here: Here, monkeypatch: Any, capsys: Any) -> None:
    for name in ("PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_INDEX_URL", here.index.url)
    monkeypatch.setenv("TFENV_CACHE", str(here.folder / "cache"))
    asked = ["facts", "audit", "--output", str(here.file), "--json", "--deep", "2.15.1"]
    assert cli.run(asked) == 0
    assert json.loads(capsys.readouterr().out)["wheels"] == 2
    assert here.facts()["2.15.1"]["cudnn"] == "8.9.4"
    assert cli.run(["facts", "audit", "--output", str(here.file), "--check"]) == 1
    assert "2.16.0rc0" in capsys.readouterr().out


def test_show(capsys: Any) -> None:
    assert cli.run(["facts", "show", "2.15.1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["tensorflow"], shown["cuda"]) == ("2.15.1", "12.2")
    assert cli.run(["facts", "show", "2.15"]) == 0
    newest = capsys.readouterr().out
    assert newest.startswith("tensorflow 2.15.1\n")
    assert "  nccl: version 2.16.5, linked, machine code for 5.0, " in newest
    assert cli.run(["facts", "show"]) == 0
    table = capsys.readouterr().out
    assert cli.run(["facts"]) == 0
    assert capsys.readouterr().out == table
    assert len(table.splitlines()) == len(facts.releases())
    assert cli.run(["facts", "show", "2.98.0"]) == 2
    assert "2.98.0" in capsys.readouterr().err


def test_the_committed_files_belong_together() -> None:
    file = resources.facts_dir() / "tensorflow.json"
    kept = datafile.load(file)
    known = [version for version, entry in kept.items() if entry["wheels"]]
    assert tuple(known) == facts.releases()
    assert datafile.facts_text(kept) == file.read_text("utf-8")
