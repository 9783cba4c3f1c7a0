"""What uv is told, which of its failures are of the pins, and where the files are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tfenv.bisect import locating, resolving
from tfenv.bisect.interpreter import find_python, version_of
from tfenv.bisect.locating import Located, Locator, lines
from tfenv.bisect.model import Endpoint, Pin, PinSet
from tfenv.bisect.resolving import Resolver
from tfenv.bisect.venv import BuildRefused, VenvBuilder
from tfenv.errors import NotReadyError, UsageError
from tfenv.index import IndexSettings
from tfenv.store import Store

PLATFORM = "x86_64-manylinux_2_36"
A, B = "a" * 64, "b" * 64


def builder(tmp_path: Path, run: Callable[..., Any]) -> VenvBuilder:
    return VenvBuilder(
        home=tmp_path / "env",
        python="python3",
        folder=tmp_path,
        lines=lambda pins: pins.requirements(),
        index=IndexSettings(),
        uv="uv",
        env={"HOME": "/h", "UV_EXCLUDE_NEWER": "2020-01-01", "VIRTUAL_ENV": "/mine"},
        run=run,
    )


def test_uv_is_told_files_by_hash_and_nothing_of_the_users_own(tmp_path: Path) -> None:
    seen: list[tuple[list[str], str, Mapping[str, str]]] = []

    def run(command: list[str], *, input: str, env: Mapping[str, str], **_: object) -> Any:
        seen.append((command, input, env))
        return subprocess.CompletedProcess(command, 0, "", "")

    pins = PinSet.of(
        [Pin(name="x", version="1", hashes=(A,)), Pin(name="s", version="2", hashes=(B,), source=True)]
    )
    with builder(tmp_path, run).build(pins) as built:
        assert not built.requires
    (venv, _, _), (install, text, env) = seen
    assert venv[1] == "venv" and str(tmp_path / "env") in venv
    assert "--require-hashes" in install and "--no-deps" in install
    assert install[install.index("--no-binary") + 1] == "s"
    assert f"x==1 --hash=sha256:{A}" in text
    assert "UV_EXCLUDE_NEWER" not in env and "VIRTUAL_ENV" not in env


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("error: Hash mismatch for `x==1`", BuildRefused),
        ("error: x has no wheels", BuildRefused),
        ("HTTP status client error (404 Not Found) for url", BuildRefused),
        ("HTTP status client error (410 Gone) for url", BuildRefused),
        ("HTTP status server error (503 Service Unavailable) for url", NotReadyError),
        ("HTTP status client error (401 Unauthorized) for url", NotReadyError),
        ("HTTP status client error (429 Too Many Requests) for url", NotReadyError),
        ("error: failed to write: No space left on device (os error 28)", NotReadyError),
        ("error: dns error: failed to lookup", NotReadyError),
    ],
)
def test_only_what_is_the_pins_fault_is_their_verdict(
    tmp_path: Path, stderr: str, kind: type[Exception]
) -> None:
    def run(command: list[str], **_: object) -> Any:
        return subprocess.CompletedProcess(command, 1, "", stderr)

    with pytest.raises(kind), builder(tmp_path, run).build(PinSet(())):
        pass


def test_without_uv(tmp_path: Path) -> None:
    def run(*_: object, **__: object) -> Any:
        raise FileNotFoundError(2, "No such file")

    with pytest.raises(NotReadyError, match="cannot run uv"), builder(tmp_path, run).build(PinSet(())):
        pass


def document(name: str, version: str, files: Mapping[str, str]) -> dict[str, Any]:
    """As uv writes it: files are hashes by file name."""
    wheels = [{"url": f"https://i.invalid/{f}", "hashes": {"sha256": sha}} for f, sha in files.items()]
    return {"name": name, "version": version, "wheels": wheels}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What uv was asked; every index of ``index_url`` has its own file of x."""
    seen: list[dict[str, Any]] = []

    def compile_pylock(requirements: Any, **options: Any) -> dict[str, Any]:
        seen.append({"requirements": list(requirements), **options})
        if any(text.startswith("gone") for text in requirements):
            raise UsageError("no gone", remedy="none")
        sha = B if options["index"].index_url == "https://second.invalid" else A
        names = [text.partition("==")[0] for text in requirements if "<" not in text]
        files = {name: {f"{name.replace('-', '_')}-1-py3-none-any.whl": sha} for name in names}
        return {"packages": [document(name, "1", files[name]) for name in names]}

    monkeypatch.setattr(locating, "compile_pylock", compile_pylock)
    monkeypatch.setattr(resolving, "compile_pylock", compile_pylock)
    return seen


def locator(tmp_path: Path, *more: str) -> Locator:
    return Locator(
        python="3.11",
        platform=PLATFORM,
        index=IndexSettings(index_url="https://first.invalid", extra_index_urls=more),
        uv="uv",
        env={},
        store=Store(tmp_path / "store"),
        links=tmp_path / "links",
    )


def test_a_file_that_another_index_hides_is_found(tmp_path: Path, asked: list[Any]) -> None:
    pins = PinSet.of([Pin(name="x", version="1", hashes=(B,))])
    with pytest.raises(BuildRefused, match="x==1"):
        locator(tmp_path).locate(pins)
    at = locator(tmp_path, "https://second.invalid")
    (found,) = at.locate(pins)
    assert (found.sha256, found.line()) == (
        B,
        f"x @ https://i.invalid/x-1-py3-none-any.whl --hash=sha256:{B}",
    )
    asked.clear()
    assert at.locate(pins) == (found,)
    assert not asked  # each is looked for once
    assert lines([found]) == f"{found.line()}\n"


def test_one_that_is_gone_does_not_hide_the_others(tmp_path: Path, asked: list[Any]) -> None:
    pins = PinSet.of([Pin(name="x", version="1"), Pin(name="gone", version="1")])
    with pytest.raises(BuildRefused, match=r"any more of gone==1$"):
        locator(tmp_path).locate(pins)


def test_what_the_store_has_is_asked_of_nobody(tmp_path: Path, asked: list[Any]) -> None:
    import hashlib

    at = locator(tmp_path)
    sha = hashlib.sha256(b"wheel").hexdigest()
    at.store.path(sha).parent.mkdir(parents=True)
    at.store.path(sha).write_bytes(b"wheel")
    pin = Pin(name="x", version="1", hashes=(sha,), file="x-1-py3-none-any.whl")
    (found,) = at.locate(PinSet.of([pin]))
    assert not asked
    assert found.url.startswith("file://") and found.url.endswith("/x-1-py3-none-any.whl")
    assert (tmp_path / "links" / sha / pin.file).read_bytes() == b"wheel"


def test_the_best_of_many_wheels() -> None:
    files = {
        "x-1-py3-none-any.whl": A,
        "x-1-cp311-cp311-manylinux_2_17_x86_64.whl": B,
        "x-1-2-cp311-cp311-manylinux_2_17_x86_64.whl": "c" * 64,
        "x-1-cp312-cp312-manylinux_2_17_x86_64.whl": "d" * 64,
        "no wheel": "e" * 64,
    }
    tags = locating.supported_tags("3.11", PLATFORM)

    def best(*hashes: str) -> Located | None:
        return locating.best_file(Pin(name="x", version="1", hashes=hashes), document("x", "1", files), tags)

    assert (found := best()) and found.sha256 == "c" * 64  # the higher build
    assert (found := best(A, B)) and found.sha256 == B
    assert best("d" * 64) is None


def test_what_the_resolver_is_told(asked: list[Any]) -> None:
    noted: list[Pin] = []
    resolver = Resolver(
        python="3.11",
        platform=PLATFORM,
        index=IndexSettings(),
        uv="uv",
        env={},
        left_out=("nvidia-",),
        note=lambda pin, _file: noted.append(pin),
    )
    end = Endpoint(
        label="A", requirements=("x", "nvidia-y==1"), from_source=("s",), without=("nvidia-nccl-cu12",)
    )
    pins = resolver.resolve(end, ("x<2",), "2024-01-01T00:00:00Z")
    (told,) = asked
    assert told["requirements"] == ["x", "nvidia-y==1", "x<2"]
    assert told["options"][:2] == ("--exclude-newer", "2024-01-01T00:00:00Z")
    assert "nvidia-y=false" in told["options"] and "--no-binary" in told["options"]
    assert told["overrides"] == ["nvidia-nccl-cu12 ; python_version < '0'"]
    assert pins.by_name["x"].file == "x-1-py3-none-any.whl" and pins.by_name["x"].hashes == (A,)
    assert set(noted) == set(pins.pins)
    assert list(pins.by_name) == ["x"]  # without NVIDIA's wheels
    assert resolver.pin("x", "1", "").hashes == (A,)


def test_this_hosts_pythons() -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert find_python(here, {}) == sys.executable
    assert version_of(sys.executable) == here

    def found(command: list[str], **_: object) -> Any:
        return subprocess.CompletedProcess(command, 0, "/usr/bin/python3.77\n", "")

    assert find_python("3.77", {"TFENV_UV": "uv"}, found) == "/usr/bin/python3.77"
    with pytest.raises(NotReadyError, match=r"no Python 3\.77"):
        find_python("3.77", {"TFENV_UV": "uv"}, lambda c, **_: subprocess.CompletedProcess(c, 2, "", "none"))
