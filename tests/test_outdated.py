"""What is outdated: every rule once where it speaks, once where it is silent; and what was not asked."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import small
from tfenv import cli, interpreters
from tfenv.errors import NotReadyError, UsageError
from tfenv.lockfile import dump_lock
from tfenv.model import Base, Cell, CudaSet, DebianPackage, Interpreter, Lock, Matrix, Row, Wheel
from tfenv.outdated import Finding, Offer, Probes, Refused, Result, Subject, Unasked, look
from tfenv.outdated.asking import PATIENCE, Question, ask_all
from tfenv.outdated.debversion import compare
from tfenv.outdated.host import digest_today, parse_madison
from tfenv.outdated.life import EndOfLife, end_of_life
from tfenv.outdated.look import registry_of
from tfenv.outdated.project import Project, final_only
from tfenv.outdated.rules import MATRIX_RULES, RULES
from tfenv.simple_index import ProjectFile

TODAY = date(2026, 11, 30)
PLATFORM = "x86_64-manylinux_2_36"
IMAGE = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"
DIGEST = "sha256:" + "d" * 64
DEBIAN12 = Base(name="debian12", kind="debian", suite="bookworm", pythons=(("3.11", ("python3.11",)),))
DEBIAN11 = Base(name="debian11", kind="debian", suite="bullseye", pythons=(("3.9", ("python3.9",)),))
UBUNTU = Base(name="ubuntu22.04", kind="nvidia", glibc="2.35", provided_pythons=("3.11",))
SET = CudaSet(cuda="12.2", cudnn="8.9", epoch=1)


def row(tensorflow: str = "2.15.1") -> Row:
    return Row(
        tensorflow=tensorflow,
        pythons=("3.9", "3.11"),
        bases=("debian12", "debian11", "ubuntu22.04"),
        default_base="debian12",
        default_python="3.11",
        exclude_newer="2024-03-20T00:00:00Z",
        requirements=(f"tensorflow=={tensorflow}",),
    )


def cell(tensorflow: str = "2.15.1", python: str = "3.11", base: Base = DEBIAN12) -> Cell:
    return Cell(row=row(tensorflow), python=python, base=base, cuda_set=SET, cuda_from="wheels")


def wheel(name: str = "numpy", version: str = "1.26.4", **changes: Any) -> Wheel:
    tag = "cp311-cp311-manylinux_2_17_x86_64"
    values: dict[str, Any] = {
        "name": name,
        "version": version,
        "filename": f"{name.replace('-', '_')}-{version}-{tag}.whl",
        "size": 7,
        "sha256": "a" * 64,
        "layer": "python",
    }
    return Wheel(**{**values, **changes})


TENSORFLOW = wheel("tensorflow", "2.15.1")
NUMPY = wheel()
PACKAGE = DebianPackage(
    name="openssl",
    version="3.0.16-1~deb12u1",
    architecture="amd64",
    archive="debian",
    path="pool/main/o/openssl/openssl_3.0.16-1~deb12u1_amd64.deb",
    size=7,
    sha256="b" * 64,
    essential=False,
)


def lock(of: Cell, **changes: Any) -> Lock:
    values: dict[str, Any] = {
        "cell": of.name,
        "platform": "linux/amd64",
        "epoch": 1,
        "cuda_epoch": 1,
        "base_epoch": 1,
        "base_image": "",
        "base_digest": "",
        "requirements": of.requirements,
        "exclude_newer": of.row.exclude_newer,
        "wheel_platform": PLATFORM,
        "cuda_from": "wheels",
        "require_cuda": "cuda>=12.1",
        "template": "c" * 64,
        "uv": "0.9.1",
        "interpreter": None,
        "suite": of.base.suite,
        "debian_packages": (),
        "debian_locked_at": "2026-01-01T00:00:00Z",
        "debian": (PACKAGE,) if of.base.kind == "debian" else (),
        "wheels": (NUMPY, TENSORFLOW),
    }
    return Lock(**{**values, **changes})


def image_lock(of: Cell, digest: str = DIGEST) -> Lock:
    newest = interpreters.interpreter(of.python)
    return replace(small.on_image(lock(of), IMAGE), base_digest=digest, interpreter=newest)


def file_of(of: Wheel, **changes: Any) -> ProjectFile:
    values: dict[str, Any] = {"filename": of.filename, "url": "x:/", "hashes": {"sha256": of.sha256}}
    return ProjectFile(**{**values, **changes})


FILES = {"tensorflow": (file_of(TENSORFLOW),), "numpy": (file_of(NUMPY),)}


def probes(**changes: Any) -> Probes:
    """A world in which nothing has changed."""
    values: dict[str, Any] = {
        "files": lambda name: FILES.get(name, ()),
        "local": lambda wheel: False,
        "debian": lambda suite, names: {"openssl": (Offer(PACKAGE.version, "debian"),)},
        "digest": lambda image: DIGEST,
        "end_of_life": lambda: EndOfLife(
            python={"3.9": date(2025, 10, 31), "3.11": date(2027, 10, 31)},
            systems={"debian11": date(2026, 8, 31), "debian12": date(2028, 6, 30)},
            images={"12.2.2": "supported"},
            policy="tags go",
            as_of="2025-12-15",
        ),
    }
    return Probes(**{**values, **changes})


def matrix(*cells: Cell, rows: tuple[Row, ...] = ()) -> Matrix:
    found = rows or tuple({c.row.tensorflow: c.row for c in cells}.values())
    return Matrix(repository="tfenv", cells=cells, refused=(), bases=(), rows=found)


def run(of: Cell, locked: Lock | None = None, among: Matrix | None = None, **world: Any) -> Result:
    subject = Subject(cell=of, lock=lock(of) if locked is None else locked)
    return look([subject], among or matrix(of), probes(**world), TODAY)


def only(result: Result) -> Finding:
    (finding,) = result.findings
    return finding


def with_files(**more: tuple[ProjectFile, ...]) -> Callable[[str], tuple[ProjectFile, ...]]:
    return lambda name: (*FILES.get(name, ()), *more.get(name, ()))


# Nothing to do


def test_where_nothing_has_changed_there_is_nothing_to_do() -> None:
    result = run(cell())
    assert (result.findings, result.unasked, result.exit_code) == ((), (), 0)


def test_every_rule_is_in_the_table() -> None:
    assert len(set(RULES.values())) == len(RULES) == 12
    assert list(MATRIX_RULES) == ["a later minor release"]


# Releases


def tensorflow(version: str, **changes: Any) -> tuple[ProjectFile, ...]:
    return (file_of(wheel("tensorflow", version), **changes),)


def test_a_later_patch_of_the_minor_release() -> None:
    found = only(run(cell(), files=with_files(tensorflow=tensorflow("2.15.2"))))
    assert (found.kind, found.severity, found.cell) == ("patch", "act", cell().name)
    assert "2.15.2" in found.message and "2.15.2" in found.remedy


@pytest.mark.parametrize(
    "files",
    [
        tensorflow("2.14.9"),
        tensorflow("2.15.2rc0"),
        tensorflow("2.15.2", yanked="bad"),
        tensorflow("2.15.2", requires_python=">=3.12"),
        tensorflow("2.15.2", filename="tensorflow-2.15.2-cp312-cp312-manylinux_2_17_x86_64.whl"),
        tensorflow("2.15.2", filename="tensorflow-2.15.2-cp311-cp311-macosx_12_0_arm64.whl"),
        tensorflow("2.15.2", filename="tensorflow-2.15.2.tar.gz"),
        tensorflow("2.15.2", filename="nonsense.whl"),
    ],
)
def test_what_is_no_later_patch_for_this_cell(files: tuple[ProjectFile, ...]) -> None:
    assert run(cell(), files=with_files(tensorflow=files)).findings == ()


def test_a_patch_that_has_its_own_row_is_no_news() -> None:
    rows = (row("2.15.1"), row("2.15.2"))
    found = run(cell(), among=matrix(cell(), rows=rows), files=with_files(tensorflow=tensorflow("2.15.2")))
    assert found.findings == ()


def test_a_candidate_is_outdated_by_the_next_one() -> None:
    of = cell("2.22.0rc0")
    mine = wheel("tensorflow", "2.22.0rc0")
    files = {"tensorflow": (file_of(mine), *tensorflow("2.22.0rc1"))}
    found = only(run(of, lock(of, wheels=(mine,)), files=lambda name: files[name]))
    assert found.kind == "patch" and "2.22.0rc1" in found.message


def test_a_minor_release_beyond_the_matrix() -> None:
    found = only(run(cell(), files=with_files(tensorflow=tensorflow("2.16.1"))))
    assert (found.kind, found.severity, found.cell) == ("minor", "act", "")


def test_a_candidate_beyond_the_matrix_is_news_only() -> None:
    result = run(cell(), files=with_files(tensorflow=tensorflow("2.16.0rc0")))
    assert only(result).severity == "info"
    assert result.exit_code == 0


def test_a_release_without_any_wheel_left() -> None:
    files = {"tensorflow": (file_of(TENSORFLOW, yanked="CVE"),), "numpy": FILES["numpy"]}
    result = run(cell(), files=lambda name: files[name])
    assert {finding.kind for finding in result.findings} == {"release gone", "yanked"}


# Locked wheels


def world_of(*numpy: ProjectFile) -> Callable[[str], tuple[ProjectFile, ...]]:
    return lambda name: numpy if name == "numpy" else FILES.get(name, ())


@pytest.mark.parametrize(("reason", "said"), [("it is broken", "it is broken"), ("", "no reason given")])
def test_a_yanked_wheel(reason: str, said: str) -> None:
    result = run(cell(), files=world_of(file_of(NUMPY, yanked=reason)))
    found = only(result)
    assert (found.kind, found.severity) == ("yanked", "act")
    assert said in found.message and "numpy 1.26.4" in found.message
    assert result.exit_code == 1


def test_yanked_on_one_index_and_offered_by_another_is_not_yanked() -> None:
    assert run(cell(), files=world_of(file_of(NUMPY, yanked="x"), file_of(NUMPY))).findings == ()


def test_a_wheel_that_vanished() -> None:
    found = only(run(cell(), files=world_of()))
    assert (found.kind, found.severity) == ("vanished", "urgent")
    assert NUMPY.filename in found.message


def test_a_wheel_whose_bytes_are_others() -> None:
    found = only(run(cell(), files=world_of(file_of(NUMPY, hashes={"sha256": "f" * 64}))))
    assert (found.kind, found.severity) == ("hash changed", "urgent")
    assert "f" * 12 in found.message and "a" * 12 in found.message


@pytest.mark.parametrize("numpy", [(), (file_of(NUMPY, hashes={"sha256": "f" * 64}),)])
def test_a_wheel_in_a_folder_of_the_user_is_there(numpy: tuple[ProjectFile, ...]) -> None:
    assert run(cell(), files=world_of(*numpy), local=lambda wheel: wheel == NUMPY).findings == ()


def test_the_locked_wheel_beside_a_namesake_is_there() -> None:
    namesake = file_of(NUMPY, hashes={"sha256": "f" * 64})
    assert run(cell(), files=world_of(namesake, file_of(NUMPY))).findings == ()


def test_an_index_without_hashes_leaves_it_open_whether_a_wheel_is_the_same() -> None:
    result = run(cell(), files=world_of(file_of(NUMPY, hashes={})))
    (gap,) = result.unasked
    assert NUMPY.filename in gap.what and "sha256" in gap.why
    assert (result.findings, result.exit_code) == ((), 3)


def test_newer_versions_are_summed_up_and_no_alarm() -> None:
    newer = file_of(wheel("numpy", "2.0.0"))
    result = run(cell(), files=world_of(file_of(NUMPY), newer))
    found = only(result)
    assert (found.kind, found.severity, found.details) == (
        "newer packages",
        "info",
        ("numpy 1.26.4 -> 2.0.0",),
    )
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "other",
    [wheel("numpy", "1.0"), wheel("numpy", "2.0.0rc1"), wheel("numpy", "2.0", filename="numpy-2.tar.gz")],
)
def test_what_is_no_newer_version(other: Wheel) -> None:
    assert run(cell(), files=world_of(file_of(NUMPY), file_of(other))).findings == ()


def test_the_installer_is_not_counted() -> None:
    uv = wheel("uv", "0.9.1", layer="tool")
    files = {**FILES, "uv": (file_of(uv), file_of(wheel("uv", "1.0.0")))}
    assert run(cell(), lock(cell(), wheels=(TENSORFLOW, uv)), files=lambda name: files[name]).findings == ()


def test_the_newest_version_that_fits() -> None:
    project = Project(
        "numpy",
        (
            file_of(wheel("numpy", "1.9.0")),
            file_of(wheel("numpy", "1.10.0")),
            file_of(wheel("numpy", "2.0.0"), requires_python=">=3.12"),
            file_of(wheel("numpy", "3.0.0rc1")),
            file_of(wheel("numpy", "4.0.0"), requires_python="nonsense"),
        ),
    )
    assert str(project.newest("3.11", PLATFORM, final_only)) == "1.10.0"
    assert str(project.newest("3.11", PLATFORM)) == "3.0.0rc1"
    assert project.newest("3.9", PLATFORM) is None


# Debian


def mirror(*offers: Offer) -> Callable[..., Mapping[str, tuple[Offer, ...]]]:
    return lambda suite, names: {"openssl": offers}


OLD, NEW = Offer(PACKAGE.version, "debian"), "3.0.17-1~deb12u3"


def test_a_security_update() -> None:
    result = run(cell(), debian=mirror(OLD, Offer(NEW, "debian-security")))
    found = only(result)
    assert (found.kind, found.severity) == ("debian security", "act")
    assert found.details == (f"openssl {PACKAGE.version} -> {NEW}",)
    assert result.exit_code == 1


def test_another_newer_version() -> None:
    found = only(run(cell(), debian=mirror(OLD, Offer(NEW, "debian"))))
    assert (found.kind, found.severity) == ("debian", "info")


@pytest.mark.parametrize("offers", [(), (Offer("3.0.1-1", "debian"),)])
def test_a_package_that_the_mirror_lost(offers: tuple[Offer, ...]) -> None:
    found = only(run(cell(), debian=mirror(*offers)))
    assert (found.kind, found.severity) == ("debian gone", "act")


def test_an_older_security_version_is_no_update() -> None:
    assert run(cell(), debian=mirror(OLD, Offer("3.0.2-1", "debian-security"))).findings == ()


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ("1.0", "1.0", 0),
        ("1.9", "1.10", -1),
        ("1.0~rc1", "1.0", -1),
        ("1:0.9", "2.0", 1),
        ("0:1.0", "1.0", 0),
        ("1.0-1", "1.0-1+deb12u1", -1),
        ("1.0-1+b1", "1.0-1", 1),
        ("1.0-1~bpo1", "1.0-1", -1),
        ("1.0a", "1.0+", -1),
        ("1.0", "1.0-0", 0),
        ("2.36-9+deb12u10", "2.36-9+deb12u9", 1),
        ("1.0-2-1", "1.0-1-2", 1),
        ("1.01", "1.1", 0),
    ],
)
def test_versions_are_ordered_as_debian_does(a: str, b: str, order: int) -> None:
    assert compare(a, b) == order
    assert compare(b, a) == -order


def test_what_apt_says() -> None:
    text = (
        "   openssl | 3.0.17-1~deb12u3 | http://m.invalid/d-s bookworm-security/main amd64 Packages\n"
        "   openssl | 3.0.16-1 | http://m.invalid/debian bookworm/main amd64 Packages\n"
        "      adduser |      3.134 | http://m.invalid/debian bookworm-updates/main amd64 Packages\n"
    )
    assert parse_madison(text) == {
        "openssl": (Offer("3.0.17-1~deb12u3", "debian-security"), Offer("3.0.16-1", "debian")),
        "adduser": (Offer("3.134", "debian"),),
    }


# Bases


UBUNTU_CELL = cell(base=UBUNTU)


def test_a_base_that_was_pushed_again() -> None:
    found = only(run(UBUNTU_CELL, image_lock(UBUNTU_CELL), digest=lambda image: "sha256:" + "e" * 64))
    assert (found.kind, found.severity) == ("base pushed again", "act")
    assert IMAGE in found.message and found.remedy.startswith(f"tfenv lock {UBUNTU_CELL.name} --upgrade base")


def test_a_base_that_is_the_same() -> None:
    assert run(UBUNTU_CELL, image_lock(UBUNTU_CELL)).findings == ()


def test_a_base_that_is_gone() -> None:
    found = only(run(UBUNTU_CELL, image_lock(UBUNTU_CELL), digest=lambda image: ""))
    assert (found.kind, found.severity) == ("base gone", "urgent")


def test_a_base_that_was_never_pinned() -> None:
    assert only(run(UBUNTU_CELL, image_lock(UBUNTU_CELL, ""))).kind == "base not pinned"


@pytest.mark.parametrize(("state", "severity"), [("unsupported", "act"), ("removed", "urgent")])
def test_a_tag_about_to_be_deleted(state: Any, severity: str) -> None:
    life = EndOfLife(images={"12.2.2": state}, policy="tags go", as_of="2025-12-15")
    found = only(run(UBUNTU_CELL, image_lock(UBUNTU_CELL), end_of_life=lambda: life))
    assert (found.kind, found.severity) == ("base may be deleted", severity)
    assert "tags go" in found.message and "2025-12-15" in found.message


@pytest.mark.parametrize("images", [{"12.2.2": "supported"}, {"12.2": "removed"}, {}])
def test_a_tag_of_which_nothing_bad_is_known(images: Any) -> None:
    life = EndOfLife(images=images)
    assert run(UBUNTU_CELL, image_lock(UBUNTU_CELL), end_of_life=lambda: life).findings == ()


@pytest.mark.parametrize(("day", "speaks"), [(date(2026, 6, 30), True), (date(2027, 6, 30), False)])
def test_a_tag_ends_with_the_driver_branch_that_it_came_with(day: date, speaks: bool) -> None:
    life = EndOfLife(branches={"535": day}, came_with={"12.2": "535", "12.1": "530"}, policy="tags go")
    found = run(UBUNTU_CELL, image_lock(UBUNTU_CELL), end_of_life=lambda: life).findings
    assert [f.severity for f in found] == (["act"] if speaks else [])
    assert not speaks or ("535" in found[0].message and "2026-06-30" in found[0].message)
    assert life.image_branch(IMAGE.replace("12.2.2", "12.1.1")) is None


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        (IMAGE, "docker.io"),
        ("ubuntu:24.04", "docker.io"),
        ("ghcr.io/a/b:c", "ghcr.io"),
        ("localhost/a:b", "localhost"),
        ("mirror:5000/nvidia/cuda:x", "mirror:5000"),
    ],
)
def test_the_registry_of_an_image(image: str, registry: str) -> None:
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    "said", [f"ERROR: docker.io/{IMAGE}: not found", "MANIFEST_UNKNOWN: manifest unknown"]
)
def test_a_registry_that_has_no_such_tag_has_answered(said: str) -> None:
    def ask(image: str) -> str:
        raise NotReadyError(said, remedy="x")

    assert digest_today(IMAGE, ask) == ""


def test_a_registry_that_is_not_reached_has_not_answered() -> None:
    def ask(image: str) -> str:
        raise NotReadyError("dial tcp: lookup docker.io: no such host", remedy="x")

    with pytest.raises(NotReadyError):
        digest_today(IMAGE, ask)
    assert digest_today(IMAGE, lambda image: DIGEST) == DIGEST


class Registry(http.server.BaseHTTPRequestHandler):
    """One image, whatever its name; the tag `gone` is not there."""

    manifest = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}'

    def do_GET(self) -> None:
        there = not self.path.endswith("/gone")
        body = self.manifest if there else b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown"}]}'
        self.send_response(200 if there else 404)
        self.send_header("Content-Type", "application/vnd.oci.image.index.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.engine
def test_a_real_client_asks_a_registry() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        image = f"localhost:{server.server_port}/nvidia/cuda"
        assert digest_today(f"{image}:x") == f"sha256:{hashlib.sha256(Registry.manifest).hexdigest()}"
        assert digest_today(f"{image}:gone") == ""
        server.shutdown()
    with pytest.raises(NotReadyError):
        digest_today(f"{image}:x")


# Ends of life


def test_a_python_at_its_end_and_what_to_take_instead() -> None:
    old = cell(python="3.9")
    result = run(old, lock(old, wheels=(), debian=()), among=matrix(old, cell()))
    found = only(result)
    assert (found.kind, found.severity) == ("python end of life", "info")
    assert "2025-10-31" in found.message and found.remedy == "use the same release with Python 3.11"
    assert result.exit_code == 0


def test_a_python_at_its_end_and_nothing_to_take_instead() -> None:
    old = cell(python="3.9")
    assert "newer release" in only(run(old, lock(old, wheels=(), debian=()))).remedy


def test_a_system_at_its_end_and_what_to_take_instead() -> None:
    old = cell(base=DEBIAN11)
    found = only(run(old, lock(old, debian=()), among=matrix(old, cell())))
    assert (found.kind, found.remedy) == ("system end of life", "use the same release with base debian12")


@pytest.mark.parametrize(("day", "speaks"), [(date(2027, 1, 1), True), (date(2027, 6, 1), False)])
def test_an_end_is_said_some_time_before(day: date, speaks: bool) -> None:
    result = run(cell(), end_of_life=lambda: EndOfLife(python={"3.11": day}))
    assert bool(result.findings) == speaks
    assert not speaks or "comes to its end of life on 2027-01-01" in only(result).message


def test_the_committed_tables_know_every_base_and_python_of_the_matrix() -> None:
    from tfenv.matrix import load_matrix

    found = load_matrix(Path(__file__).parent.parent / "matrix.yaml")
    life = end_of_life()
    assert {c.base.name for c in found.cells} <= set(life.systems)
    assert {c.python for c in found.cells} <= set(life.python)
    images = {c.image.partition("@")[0] for c in found.cells if c.image}
    assert all(life.image_state(image) for image in images)


# Locks, resolvers, interpreters


def test_a_cell_without_a_lock() -> None:
    result = look([Subject(cell=cell(), lock=None)], matrix(cell()), probes(), TODAY)
    found = only(result)
    assert (found.kind, found.severity) == ("not locked", "info")
    assert found.remedy == f"tfenv lock {cell().name}"


def test_a_cell_that_no_longer_resolves() -> None:
    found = only(run(cell(), resolve=lambda cell, lock: Refused("numpy is gone")))
    assert (found.kind, found.severity) == ("does not resolve", "act")
    assert "numpy is gone" in found.message


def test_a_cell_that_resolves_to_something_else() -> None:
    found = only(run(cell(), resolve=lambda cell, lock: (wheel("numpy", "1.26.5"), TENSORFLOW)))
    assert (found.kind, found.severity, found.details) == ("resolves differently", "info", ("numpy 1.26.5",))


def test_a_cell_that_resolves_to_what_is_locked() -> None:
    tool = wheel("uv", "9.9.9", layer="tool")
    assert run(cell(), resolve=lambda cell, lock: (*lock.wheels, tool)).findings == ()


def test_a_resolver_that_cannot_be_asked() -> None:
    def resolve(cell: Cell, lock: Lock) -> tuple[Wheel, ...]:
        raise NotReadyError("no network", remedy="x")

    result = run(cell(), resolve=resolve)
    assert [gap.what for gap in result.unasked] == [f"what {cell().name} resolves to"]


def test_a_resolver_is_not_asked_unless_wanted() -> None:
    assert run(cell()).asked == run(cell(), resolve=lambda cell, lock: lock.wheels).asked - 1


def test_a_later_build_of_the_provided_python() -> None:
    from tfenv.interpreters import interpreter

    now = interpreter("3.11")
    assert run(cell(), lock(cell(), interpreter=now)).findings == ()
    old = Interpreter(
        provider=now.provider,
        version="3.11.0",
        filename="x",
        path="x",
        sha256="0" * 64,
        released="2022-01-01T00:00:00Z",
    )
    assert only(run(cell(), lock(cell(), interpreter=old))).kind == "newer python"


# What cannot be asked


def refuse(*_: object) -> Any:
    raise NotReadyError("https://user:secret@h.invalid does not answer", remedy="x")


def test_what_cannot_be_asked_is_said_and_is_no_success() -> None:
    of = cell()
    result = run(
        of,
        replace(lock(of), base_image=IMAGE, base_digest=DIGEST),
        files=refuse,
        debian=refuse,
        digest=refuse,
        end_of_life=refuse,
        hosts={"index": "index.invalid", "debian": "deb.invalid"},
    )
    assert (result.findings, result.exit_code, result.asked) == ((), 3, 5)
    assert {(gap.host, gap.what) for gap in result.unasked} == {
        ("index.invalid", "the files of numpy"),
        ("index.invalid", "the files of tensorflow"),
        ("deb.invalid", "the packages of bookworm"),
        ("docker.io", f"the digest of {IMAGE}"),
        ("tfenv's own tables", "end-of-life dates"),
    }
    assert not any("secret" in gap.why for gap in result.unasked)


def test_a_finding_says_more_than_an_open_question() -> None:
    result = run(cell(), digest=refuse, debian=refuse, files=world_of())
    assert result.unasked and result.exit_code == 1


def test_cells_share_their_questions() -> None:
    asked: Counter[str] = Counter()

    def files(name: str) -> tuple[ProjectFile, ...]:
        asked[name] += 1
        return FILES[name]

    cells = [cell(), cell(python="3.9"), cell(base=UBUNTU)]
    subjects = [Subject(cell=c, lock=lock(c)) for c in cells]
    result = look(subjects, matrix(*cells), probes(files=files), TODAY)
    assert asked == {"numpy": 1, "tensorflow": 1}
    assert result.asked == 4


def question(host: str, error: Exception | None = None, asked: list[str] | None = None) -> Question[str]:
    def ask() -> str:
        if asked is not None:
            asked.append(host)
        if error:
            raise error
        return host

    return Question("it", host, ask)


def test_a_silent_host_is_left_alone_after_a_while() -> None:
    asked: list[str] = []
    down = {str(i): question("down", OSError("refused"), asked) for i in range(10)}
    answers, gaps = ask_all({**down, "up": question("up")}, workers=1)
    assert (answers, len(asked)) == ({"up": "up"}, PATIENCE)
    assert gaps == (Unasked(what="it", host="down", why="refused"),) * 10


def test_a_host_that_refuses_is_asked_on() -> None:
    asked: list[str] = []
    no = {str(i): question("h", UsageError("no", remedy="x"), asked) for i in range(10)}
    assert len(ask_all(no, workers=1)[1]) == len(asked) == 10


def test_a_fault_of_tfenv_is_no_open_question() -> None:
    with pytest.raises(ZeroDivisionError):
        ask_all({"a": question("h", ZeroDivisionError())})


# The command


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """The command in a folder with two locked cells and one that is not, in a world of the test's own."""
    from tfenv import workspace
    from tfenv.lock import write_lock

    cells = (cell(), cell(base=DEBIAN11, python="3.9"), cell(base=UBUNTU))
    (tmp_path / "matrix.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workspace.Workspace, "matrix", matrix(*cells))
    for locked in cells[:2]:
        write_lock(lock(locked), tmp_path / "images")

    def tell(capsys: pytest.CaptureFixture[str], *arguments: str, **world: Any) -> tuple[int, str, str]:
        def made(env: object, *, resolve: bool) -> Probes:
            assert resolve == ("--resolve" in arguments)
            return probes(**world)

        monkeypatch.setattr("tfenv.outdated.host.host_probes", made)
        return (cli.run(("outdated", *arguments)), *capsys.readouterr())

    return tell


def test_what_is_the_same_in_many_cells_is_said_once(place: Any, capsys: Any) -> None:
    code, out, err = place(capsys, "--all", files=world_of())
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("urgent  2 cells, e.g. 2.15.1-cu12.2-cudnn8.9-py3.11-debian12: numpy-1.26.4")
    assert "--upgrade wheels" in lines[1] and "tfenv lock CELL" in lines[1]
    assert lines[-1] == "cells: 3, questions: 5, without an answer: 0, urgent: 2, act: 0, info: 3"


def test_one_cell_is_called_by_its_name_also_in_the_remedy(place: Any, capsys: Any) -> None:
    code, out, _ = place(capsys, cell().name, files=world_of())
    assert code == 1
    assert out.startswith(f"urgent  {cell().name}: numpy-1.26.4")
    assert f"tfenv lock {cell().name} --upgrade wheels" in out


def test_details_of_one_cell_are_on_one_line(place: Any, capsys: Any) -> None:
    names = [f"p{i}" for i in range(6)]
    wheels = tuple(wheel(name, "1.0") for name in names)
    newer = {name: (file_of(wheel(name, "1.0")), file_of(wheel(name, "2.0"))) for name in names}
    Path("images", cell().name, "lock.json").write_text(dump_lock(lock(cell(), wheels=wheels)))
    _, out, _ = place(capsys, cell().name, files=lambda name: newer.get(name) or FILES[name])
    assert out.splitlines()[1] == "        " + ", ".join(f"p{i} 1.0 -> 2.0" for i in range(4)) + " and 2 more"


def test_open_questions_go_to_stderr_once_for_each_host(place: Any, capsys: Any) -> None:
    code, out, err = place(capsys, cell().name, files=refuse)
    assert code == 3
    assert err.count("could not be asked") == 1 and "and 1 more" in err and "secret" not in err
    assert "without an answer: 2" in out


def test_as_json(place: Any, capsys: Any) -> None:
    code, out, _ = place(capsys, "--json", "--all", files=world_of())
    told = json.loads(out)
    assert code == told["exit_code"] == 1
    assert told["findings"][0]["kind"] == "vanished"
    assert set(told["findings"][0]) == {"cell", "kind", "severity", "message", "remedy", "details"}
    assert told["unasked"] == [] and told["asked"] == 5


def test_resolve_is_handed_on(place: Any, capsys: Any) -> None:
    code, out, _ = place(capsys, "--resolve", cell().name, resolve=lambda cell, lock: Refused("gone"))
    assert code == 1 and "it no longer resolves: gone" in out


def test_a_damaged_lock_is_a_failure_and_the_others_are_looked_at(place: Any, capsys: Any) -> None:
    Path("images", cell().name, "lock.json").write_text("{")
    code, out, err = place(capsys, "--all")
    assert code == 1
    assert "cannot be used" in err and "cells: 2," in out


def test_no_cell_named_is_a_mistake(place: Any, capsys: Any) -> None:
    assert place(capsys)[0] == 2


def test_every_finding_has_a_remedy() -> None:
    of = cell(python="3.9")
    result = run(of, files=world_of(), debian=mirror(), resolve=lambda cell, lock: Refused("x"))
    assert len(result.findings) >= 4
    assert all(finding.remedy and finding.message for finding in result.findings)
