from __future__ import annotations

from pathlib import Path

import pytest
from tfenv_verify.checks import hygiene
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.protocol import Report


@pytest.fixture
def report() -> Report:
    return Report()


def message(report: Report) -> str:
    (found,) = report.findings
    return f"{found['message']}\n{found['evidence']}"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_compiler_is_found(report: Report) -> None:
    hygiene.compilers(lambda name: None, report.error)
    assert report.findings == []
    hygiene.compilers(lambda name: "/usr/bin/gcc" if name == "gcc" else None, report.error)
    assert "/usr/bin/gcc" in message(report)


@pytest.mark.parametrize(("keep", "told"), [((), True), (("**",), False), (("tensorflow/include/**",), True)])
def test_only_an_image_to_develop_in_may_have_a_compiler(
    monkeypatch: pytest.MonkeyPatch, report: Report, keep: tuple[str, ...], told: bool
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(hygiene, "site_folders", list)
    monkeypatch.setattr(hygiene, "_existing", lambda path: [])
    hygiene.check(Context(declared=Declared(cell="x", keep=keep)), report)
    assert any("a compiler is in the image" in found["message"] for found in report.findings) is told


def test_lists_of_apt_are_found(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "lock")
    (tmp_path / "partial").mkdir()
    hygiene.package_lists(str(tmp_path), report.error)
    assert report.findings == []
    write(tmp_path / "mirror_dists_bookworm_InRelease")
    hygiene.package_lists(str(tmp_path), report.error)
    assert "1 files of apt's lists" in message(report)


def test_caches_are_found(tmp_path: Path, report: Report) -> None:
    pattern = str(tmp_path / "*/.cache/pip")
    (tmp_path / "empty/.cache/pip").mkdir(parents=True)
    hygiene.caches([pattern], report.error)
    assert report.findings == []
    write(tmp_path / "full/.cache/pip/wheel")
    hygiene.caches([pattern], report.error)
    assert "full/.cache/pip" in message(report)


def test_headers_and_archives_are_found(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "tensorflow/include/a.h")
    write(tmp_path / "nvidia/x/lib/libx.a")
    write(tmp_path / "nvidia/x/lib/libx.so.1")
    hygiene.development_files([str(tmp_path)], [], report.error, report)
    assert "2 headers and static libraries" in message(report)


def test_what_is_kept_on_purpose_is_no_finding(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "tensorflow/include/deep/a.h")
    hygiene.development_files([str(tmp_path)], ["tensorflow/include/*"], report.error, report)
    assert report.findings == []
    assert report.facts["kept_on_purpose"] == 1


def test_proxies_are_named_without_their_value(report: Report) -> None:
    hygiene.leftovers({"no_proxy": "*", "HTTP_PROXY": ""}, [], [], report.error)
    assert report.findings == []
    hygiene.leftovers({"https_proxy": "http://user:hunter2@proxy"}, [], [], report.error)
    assert "https_proxy" in message(report)
    assert "hunter2" not in str(report.findings)


@pytest.mark.parametrize(
    ("kind", "bad", "good"),
    [
        ("apt", 'Acquire::http::Proxy "http://p";', '// Acquire::http::Proxy "http://p";'),
        ("pip", "[global]\nindex-url = https://i", "[global]\n# index-url = https://i"),
    ],
)
def test_configuration_left_over(tmp_path: Path, report: Report, kind: str, bad: str, good: str) -> None:
    path = write(tmp_path / "conf", good)
    patterns = [str(path)]
    files = (patterns, []) if kind == "apt" else ([], patterns)
    hygiene.leftovers({}, *files, report.error)
    assert report.findings == []
    path.write_text(bad)
    hygiene.leftovers({}, *files, report.error)
    assert kind in message(report)
