from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from tfenv_verify.checks import record
from tfenv_verify.declared import Declared
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


OURS, EXACT = Declared(cell="c"), Declared(cell="c", record_exact=True)


def inspect(*sites: Path, declared: Declared = OURS, prefix: Path | str = "") -> Report:
    report = Report()
    record.inspect([str(site) for site in sites], report, declared, str(prefix))
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


def test_a_distribution_without_record_fails_a_cell_and_is_said_of_a_foreign_image(site: Path) -> None:
    (site / "demo-1.0.dist-info/RECORD").unlink()
    assert "1 distributions have no RECORD" in only_error(inspect(site))["message"]
    foreign = inspect(site, declared=Declared())
    assert [f["severity"] for f in foreign.findings] == ["info"]


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The layout of our images, with all that is in no RECORD and right."""
    cuda, venv = tmp_path / "cuda", tmp_path / "venv"
    site = venv / "lib/python3.11/site-packages"
    for folder in (cuda, site, venv / "bin"):
        folder.mkdir(parents=True)
    install(cuda, "nvidia_x_cu12", "1.0", {"nvidia/x/lib/libx.so": b"x"})
    install(site, "demo", "1.0", {"demo/__init__.py": b"", "../../../bin/demo": b"#!"})
    (site / "nvidia").symlink_to(cuda / "nvidia")
    (site / "tfenv-cuda.pth").write_text(f"{cuda}\n")
    (site / "demo/__pycache__").mkdir()
    (site / "demo/__pycache__/__init__.cpython-311.pyc").write_text("")
    for name in ("pyvenv.cfg", ".gitignore", "bin/activate", "bin/activate.fish", "bin/Activate.ps1"):
        (venv / name).write_text("")
    (venv / "bin/python3").symlink_to("/usr/bin/python3")
    (venv / "lib64").symlink_to("lib")
    return venv


def exact(venv: Path) -> Report:
    sites = [venv / "lib/python3.11/site-packages", venv.parent / "cuda"]
    return inspect(*sites, declared=EXACT, prefix=venv)


def test_an_exact_environment_has_only_its_own_files_besides(venv: Path) -> None:
    report = exact(venv)
    assert (report.findings, report.facts["unrecorded_files"]) == ([], 0)


@pytest.mark.parametrize(
    "path",
    [
        "lib/python3.11/site-packages/demo/patch.py",
        "lib/python3.11/site-packages/demo/patch.pyc",
        "lib/python3.11/site-packages/demo/__pycache__/patch.so",
        "lib/python3.11/site-packages/sitecustomize.py",
        "lib/python3.11/site-packages/evil.pth",
        "lib/python3.11/site-packages/new/__init__.py",
        "lib/python3.11/activate",
        "bin/tool",
        "bin/python3.11",
        "bin/activate.d/x",
        "../cuda/nvidia/x/lib/liby.so",
    ],
)
def test_any_other_file_fails_an_exact_image(venv: Path, path: str) -> None:
    new = venv / path
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text("")
    found = only_error(exact(venv))
    assert "1 files are in no RECORD" in found["message"] and Path(path).name in found["message"]
    assert found["remedy"]


def test_a_link_or_a_pth_to_elsewhere_fails_an_exact_image(venv: Path, tmp_path: Path) -> None:
    site = venv / "lib/python3.11/site-packages"
    (site / "other").symlink_to(tmp_path)
    assert "site-packages/other" in only_error(exact(venv))["message"]
    (site / "other").unlink()
    (site / "nvidia").unlink()
    (site / "nvidia").symlink_to(tmp_path / "elsewhere")
    assert "site-packages/nvidia" in only_error(exact(venv))["message"]
    (site / "nvidia").unlink()
    (site / "tfenv-cuda.pth").write_text("import os\n")
    assert "tfenv-cuda.pth" in only_error(exact(venv))["message"]


def test_a_file_without_a_hash_fails_an_exact_image(venv: Path) -> None:
    path = venv / "lib/python3.11/site-packages/demo-1.0.dist-info/RECORD"
    lines = path.read_text().splitlines()
    assert lines[0].startswith("demo/__init__.py,sha256=")
    path.write_text("\n".join(["demo/__init__.py,,", *lines[1:]]) + "\n")
    assert "1 files have no hash" in only_error(exact(venv))["message"]


def test_an_unknown_hash_algorithm_fails(site: Path) -> None:
    path = site / "demo-1.0.dist-info/RECORD"
    path.write_text(path.read_text().replace("sha256=", "sha999=", 1))
    assert "cannot be hashed" in only_error(inspect(site))["message"]
