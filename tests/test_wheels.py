from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import Tag
from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.index import IndexSettings
from tfenv.uv import compile_pylock, uv_binary, uv_version, wheel_urls
from tfenv.wheel_tags import supported_tags
from tfenv.wheels import resolve_wheels

HOST = "https://files.example/"


def entry(filename: str, sha: str, size: int | None = 10, url: str = "") -> str:
    parts = [f'url = "{url or HOST + filename}"', f'hashes = {{ sha256 = "{sha * 64}" }}']
    if size is not None:
        parts.append(f"size = {size}")
    return "{ " + ", ".join(parts) + " }"


def package(name: str, version: str, *entries: str) -> str:
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{", ".join(entries)}]\n'


class FakeUv:
    """Answers as uv does; remembers what it was asked."""

    def __init__(self, *packages: str, stderr: str = "") -> None:
        self.text, self.stderr = "\n".join(packages), stderr
        self.calls: list[tuple[list[str], str, dict[str, Any]]] = []

    def __call__(
        self, command: Sequence[str], input: str = "", **options: Any
    ) -> subprocess.CompletedProcess[str]:
        overrides = ""
        if "--override" in command:
            overrides = Path(command[command.index("--override") + 1]).read_text()
        self.calls.append((list(command), input, {**options, "overrides": overrides}))
        if command[1] == "--version":
            return subprocess.CompletedProcess(command, 0, "uv 0.9.9 (x86_64)\n", "")
        if input.startswith("uv=="):
            tool = entry("uv-0.9.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "e")
            other = entry("uv-0.9.9-py3-none-win_amd64.whl", "f")
            return subprocess.CompletedProcess(command, 0, package("uv", "0.9.9", other, tool), "")
        return subprocess.CompletedProcess(command, 1 if self.stderr else 0, self.text, self.stderr)


def resolve(run: FakeUv, **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "python": "3.11",
        "exclude_newer": "2024-03-20T00:00:00Z",
        "index": IndexSettings(),
        "uv": "uv",
        "env": {"PATH": "/bin", "UV_PRERELEASE": "allow"},
        "run": run,
    }
    return resolve_wheels(["tensorflow"], **{**defaults, **options})


def test_one_wheel_per_package_in_its_layer() -> None:
    uv = FakeUv(
        package(
            "numpy",
            "1.26.4",
            entry("numpy-1.26.4-py3-none-any.whl", "a"),
            entry("numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "b"),
            entry("numpy-1.26.4-cp311-cp311-manylinux_2_40_x86_64.whl", "c"),
            entry("numpy-1.26.4-cp310-cp310-manylinux_2_17_x86_64.whl", "d"),
        ),
        package(
            "nvidia-cublas-cu12", "12.2", entry("nvidia_cublas_cu12-12.2-py3-none-manylinux1_x86_64.whl", "9")
        ),
    )
    wheels, urls = resolve(uv)
    assert [(w.name, w.layer, w.sha256[0], w.size) for w in wheels] == [
        ("numpy", "python", "b", 10),
        ("nvidia-cublas-cu12", "cuda", "9", 10),
        ("uv", "tool", "e", 10),
    ]
    assert urls["9" * 64] == (HOST + "nvidia_cublas_cu12-12.2-py3-none-manylinux1_x86_64.whl",)


def test_the_newer_glibc_and_the_higher_build_win() -> None:
    uv = FakeUv(
        package(
            "a",
            "1",
            entry("a-1-py3-none-manylinux_2_28_x86_64.whl", "1"),
            entry("a-1-py3-none-manylinux_2_17_x86_64.whl", "2"),
        ),
        package("b", "1", entry("b-1-1-py3-none-any.whl", "3"), entry("b-1-2-py3-none-any.whl", "4")),
    )
    assert [w.sha256[0] for w in resolve(uv)[0][:2]] == ["1", "4"]
    assert resolve(uv, platform="x86_64-manylinux_2_17")[0][0].sha256[0] == "2"


def test_a_package_without_a_fitting_wheel_is_refused() -> None:
    uv = FakeUv(package("numpy", "1.0", entry("numpy-1.0-cp310-cp310-manylinux1_x86_64.whl", "a")))
    with pytest.raises(UsageError, match=r"numpy 1\.0 has no wheel"):
        resolve(uv)


def test_uv_is_asked_for_the_locked_world_only() -> None:
    uv = FakeUv()
    resolve(uv, without=["nvidia-nccl-cu12"])
    main, tool = (c for c in uv.calls if c[0][1] == "pip")
    command, requirements, options = main
    text = " ".join(command)
    assert requirements == "tensorflow\n"
    assert options["overrides"] == "nvidia-nccl-cu12 ; python_version < '0'\n"
    assert "--exclude-newer 2024-03-20T00:00:00Z" in text
    assert "--only-binary :all:" in text
    assert "--python-version 3.11 --python-platform x86_64-manylinux_2_36" in text
    # The installer is today's: it may be newer than the packages.
    assert tool[1] == "uv==0.9.9\n"
    assert "--exclude-newer" not in tool[0]
    assert tool[2]["overrides"] == ""


def test_pinned_cuda_wheels_may_be_of_any_day_and_nothing_else() -> None:
    uv = FakeUv()
    resolve(uv, exempt=["nvidia-cublas-cu12==12.2.5.6", "nvidia-cudnn-cu12==8.9.4.25"])
    text = " ".join(uv.calls[0][0])
    for name in ("nvidia-cublas-cu12", "nvidia-cudnn-cu12"):
        assert f"--exclude-newer-package {name}=false" in text
    assert "--exclude-newer 2024-03-20T00:00:00Z" in text
    assert text.count("--exclude-newer-package") == 2
    bare = FakeUv()
    resolve(bare)
    assert "--exclude-newer-package" not in " ".join(bare.calls[0][0])


def test_a_source_archive_is_taken_for_the_named_package_only() -> None:
    sdist = entry("wrapt-1.12.1.tar.gz", "a")
    uv = FakeUv(
        package("numpy", "1.26.4", entry("numpy-1.26.4-py3-none-any.whl", "b")),
        f"[[packages]]\nname = 'wrapt'\nversion = '1.12.1'\nsdist = {sdist}\n",
    )
    wheels, urls = resolve(uv, from_source=["wrapt"])
    assert [(w.name, w.layer, w.filename) for w in wheels if w.name != "uv"] == [
        ("numpy", "python", "numpy-1.26.4-py3-none-any.whl"),
        ("wrapt", "source", "wrapt-1.12.1.tar.gz"),
    ]
    assert urls["a" * 64] == (HOST + "wrapt-1.12.1.tar.gz",)
    text = " ".join(uv.calls[0][0])
    assert "--no-binary wrapt" in text and text.count("--no-binary") == 1
    assert "--no-binary" not in " ".join(uv.calls[1][0]), "not for the installer"


def test_the_users_index_reaches_uv() -> None:
    uv = FakeUv()
    resolve(uv, index=IndexSettings(index_url="https://i.example/simple", no_index=True))
    command, _, options = uv.calls[0]
    assert options["env"]["UV_DEFAULT_INDEX"] == "https://i.example/simple"
    assert "--no-index" in command
    assert options["env"] == {
        "PATH": "/bin",
        "NO_COLOR": "1",
        "UV_DEFAULT_INDEX": "https://i.example/simple",
    }, "nothing of this process's own environment"


def test_an_index_that_tells_no_size_is_measured() -> None:
    uv = FakeUv(package("a", "1", entry("a-1-py3-none-any.whl", "1", size=None)))
    assert resolve(uv, measure=lambda url: (77, "1" * 64))[0][0].size == 77
    with pytest.raises(TfenvError, match="not what its index says"):
        resolve(uv, measure=lambda url: (77, "2" * 64))
    with pytest.raises(TfenvError, match="does not tell size"):
        resolve(uv)


@pytest.mark.parametrize(
    ("stderr", "kind", "says"),
    [
        (
            "\x1b[1m\x1b[31merror\x1b[39m\x1b[0m: No solution found\n  cause: you require a==1",
            UsageError,
            "you require a==1",
        ),
        ("error: Failed to fetch\n  cause: dns error", NotReadyError, "cannot be reached"),
        ("error: https://me:pw@i.example/ is odd", TfenvError, "https://***@i.example/"),
        ("", TfenvError, "without a word"),
    ],
)
def test_uvs_reason_is_told_in_plain_words(stderr: str, kind: type[TfenvError], says: str) -> None:
    with pytest.raises(TfenvError) as caught:
        resolve(FakeUv(stderr=f"warning: noise\n{stderr}"))
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert "\x1b" not in caught.value.message
    assert "noise" not in caught.value.message


def test_uv_absent_or_another_program() -> None:
    def absent(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(NotReadyError, match="cannot run nowhere"):
        uv_version("nowhere", absent)
    with pytest.raises(NotReadyError, match="is no uv"):
        uv_version("cat", lambda *_, **__: subprocess.CompletedProcess([], 0, "cat 9", ""))


def test_which_uv() -> None:
    assert uv_binary({"TFENV_UV": "/opt/uv"}) == "/opt/uv"
    assert uv_binary({}).endswith("uv")


def test_uv_is_looked_for_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = threading.Lock()

    def find() -> str:
        assert alone.acquire(blocking=False), "another thread is looking"
        try:
            return "uv"
        finally:
            alone.release()

    monkeypatch.setattr("uv.find_uv_bin", find)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: uv_binary({}), range(500))) == {"uv"}


def test_tags_are_those_of_that_python_and_glibc() -> None:
    tags = supported_tags("3.11", "x86_64-manylinux_2_36")
    for tag in ("cp311-cp311-manylinux_2_36_x86_64", "cp37-abi3-manylinux2014_x86_64", "py3-none-any"):
        assert Tag(*tag.split("-")) in tags
    for tag in ("cp311-cp311-manylinux_2_37_x86_64", "cp312-abi3-linux_x86_64", "cp311-cp311-win_amd64"):
        assert Tag(*tag.split("-")) not in tags
    assert tags[Tag("cp311", "cp311", "manylinux_2_17_x86_64")] < tags[Tag("py3", "none", "any")]
    assert Tag("cp37", "cp37m", "manylinux1_x86_64") in supported_tags("3.7", "x86_64-manylinux_2_17")
    with pytest.raises(UsageError, match="platform"):
        supported_tags("3.11", "windows")


def test_urls_of_one_file_on_two_indexes() -> None:
    document = {
        "packages": [
            {
                "wheels": [
                    {"url": "https://a.example/x.whl", "hashes": {"sha256": "1"}},
                    {"url": "https://b.example/x.whl", "hashes": {"sha256": "1"}},
                    {"path": "/w/y.whl", "hashes": {"sha256": "2"}},
                    {"url": "https://a.example/z.whl", "hashes": {}},
                ]
            },
            {"name": "no wheels"},
        ]
    }
    assert wheel_urls(document) == {
        "1": ("https://a.example/x.whl", "https://b.example/x.whl"),
        "2": ("file:///w/y.whl",),
    }


def test_the_real_uv_reads_a_local_folder_without_network(tmp_path: Any) -> None:
    """The one test that calls uv: that its answer still has the shape that is read here."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "demo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("demo-1.0.dist-info/RECORD", "")
    index = IndexSettings(find_links=(str(tmp_path),), no_index=True)
    options: dict[str, Any] = {
        "python": "3.11",
        "platform": "x86_64-manylinux_2_36",
        "options": ("--no-deps",),
        "index": index,
        "uv": uv_binary(),
        "env": {
            "PATH": os.defpath,
            "HOME": str(tmp_path),
            "UV_EXCLUDE_NEWER": "no time",
            "UV_OVERRIDE": "/none",
        },
    }
    document = compile_pylock(["demo"], **options)
    assert document["packages"][0]["name"] == "demo"
    with pytest.raises(UsageError, match="absent-package"):
        compile_pylock(["absent-package"], **options)
