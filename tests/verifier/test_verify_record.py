from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from tfenv_verify.checks import record
from tfenv_verify.protocol import Report


def hashed(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def install(site: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    """A wheel's files with a true RECORD."""
    info = f"{name}-{version}.dist-info"
    lines = []
    for path, data in {**files, f"{info}/METADATA": b"Name: x\n"}.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        quoted = f'"{path}"' if "," in path else path
        lines.append(f"{quoted},{hashed(data)},{len(data)}")
    lines.append(f"{info}/RECORD,,")
    (site / info / "RECORD").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    site.mkdir()
    install(site, "demo", "1.0", {"demo/__init__.py": b"x = 1\n", "demo/a,b.txt": b"comma"})
    install(site, "nvidia_big_cu12", "12.2.140", {"nvidia/big/lib/libbig.so.12": b"\x7fELF" * 999})
    return site


def inspect(*sites: Path) -> Report:
    report = Report()
    record.inspect([str(site) for site in sites], report)
    return report


def only_error(report: Report) -> dict[str, str]:
    (found,) = [f for f in report.findings if f["severity"] == "error"]
    return found


def test_a_true_record_passes(site: Path) -> None:
    report = inspect(site)
    assert (report.status, report.findings) == ("pass", [])
    assert report.facts["distributions"] == 2
    assert report.facts["files"] == 7
    assert report.facts["unrecorded_files"] == 0


def test_a_changed_byte_fails_and_names_dist_and_file(site: Path) -> None:
    (site / "demo/__init__.py").write_bytes(b"x = 2\n")
    found = only_error(inspect(site))
    assert "demo 1.0" in found["message"]
    assert "demo/__init__.py: sha256" in found["message"]
    assert "demo==1.0" in found["remedy"]


def test_a_changed_size_fails(site: Path) -> None:
    (site / "demo/__init__.py").write_bytes(b"")
    assert "0 bytes, recorded 6" in only_error(inspect(site))["message"]


def test_a_missing_file_fails(site: Path) -> None:
    (site / "nvidia/big/lib/libbig.so.12").unlink()
    found = only_error(inspect(site))
    assert "nvidia_big_cu12 12.2.140" in found["message"]
    assert "missing" in found["message"]


def test_a_recorded_pyc_may_be_made_again(site: Path) -> None:
    with (site / "demo-1.0.dist-info/RECORD").open("a") as stream:
        stream.write("demo/__pycache__/__init__.cpython-311.pyc,,\n")
    assert inspect(site).status == "pass"


def test_unrecorded_files_are_said_but_not_failed(site: Path) -> None:
    (site / "demo/patch.py").write_text("")
    (site / "demo/__pycache__").mkdir()
    (site / "demo/__pycache__/patch.cpython-311.pyc").write_text("")
    report = inspect(site)
    assert report.status == "pass"
    assert report.facts["unrecorded_files"] == 1
    assert "1 files in package folders" in report.findings[0]["message"]


def test_the_same_distribution_twice_fails(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    install(other, "Demo", "2.0", {"demo2/__init__.py": b""})
    assert "demo is installed 2 times" in only_error(inspect(site, other))["message"]


def test_a_linked_folder_counts_where_it_really_is(site: Path, tmp_path: Path) -> None:
    """The layout of our images: NVIDIA's wheels outside, linked into the environment."""
    cuda = tmp_path / "cuda"
    cuda.mkdir()
    install(cuda, "nvidia_x_cu12", "1.0", {"nvidia/x/lib/libx.so": b"x"})
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "nvidia").symlink_to(cuda / "nvidia")
    install(venv, "demo", "1.0", {"demo/__init__.py": b""})
    report = inspect(venv, cuda)
    assert (report.status, report.facts["unrecorded_files"]) == ("pass", 0)


def test_a_distribution_without_record_is_said(site: Path) -> None:
    (site / "demo-1.0.dist-info/RECORD").unlink()
    report = inspect(site)
    assert report.status == "pass"
    assert "1 distributions have no RECORD" in report.findings[0]["message"]


def test_an_unknown_hash_algorithm_fails(site: Path) -> None:
    path = site / "demo-1.0.dist-info/RECORD"
    path.write_text(path.read_text().replace("sha256=", "sha999=", 1))
    assert "cannot be hashed" in only_error(inspect(site))["message"]
