"""The folder of snapshots: blobs once, an index last, and nothing half-written whatever happens."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny
from snapshots import SNAPSHOT, bundle, titles
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.snapshot.archive import Archived, write
from tfenv.snapshot.check import check
from tfenv.snapshot.format import CELL, REF
from tfenv.snapshot.layout import Layout
from tfenv.snapshot.parts import Item
from tfenv.snapshot.writing import writing

ITEMS = (Item("context/Dockerfile", b"FROM scratch\n"), Item("wheels/python/a.whl", b"wheel " * 5000))


def kept(folder: Path, *more: Item) -> Archived:
    return write(Layout(folder), SNAPSHOT, [*ITEMS, *more])


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_snapshot_is_an_oci_image_layout(tmp_path: Path) -> None:
    made = kept(tmp_path / "kept")
    assert json.loads((tmp_path / "kept" / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads((tmp_path / "kept" / "index.json").read_text())["manifests"]
    assert entry["digest"] == made.digest and entry["annotations"][REF] == SNAPSHOT.cell
    assert entry["artifactType"] == "application/vnd.tfenv.snapshot.v1+json"
    for path in (tmp_path / "kept" / "blobs" / "sha256").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        assert path.stat().st_mode & 0o777 == 0o644
    assert titles(bundle(tmp_path / "kept")[1]) == {"context/Dockerfile", "wheels/python/a.whl"}


def test_the_same_snapshot_has_the_same_digest_anywhere(tmp_path: Path) -> None:
    one, two = kept(tmp_path / "one"), kept(tmp_path / "two")
    assert one.digest == two.digest
    assert (tmp_path / "one" / "index.json").read_bytes() == (tmp_path / "two" / "index.json").read_bytes()


def test_blobs_are_stored_once(tmp_path: Path) -> None:
    first = kept(tmp_path / "kept")
    again = kept(tmp_path / "kept")
    assert (first.known, again.known, again.new_bytes) == (False, True, 0)
    before = names(tmp_path / "kept")
    more = kept(tmp_path / "kept", Item("wheels/python/b.whl", b"another"))
    assert more.new_bytes < first.new_bytes
    assert len(names(tmp_path / "kept") - before) == 2  # the file and the manifest
    assert len(Layout(tmp_path / "kept").snapshots()) == 2


def test_the_newest_has_the_cells_name_and_older_ones_stay(tmp_path: Path) -> None:
    first = kept(tmp_path / "kept")
    second = kept(tmp_path / "kept", Item("wheels/python/b.whl", b"another"))
    blobs = {blob.digest: blob.annotations for blob in Layout(tmp_path / "kept").snapshots()}
    assert REF not in blobs[first.digest] and blobs[first.digest][CELL] == SNAPSHOT.cell
    assert blobs[second.digest][REF] == SNAPSHOT.cell
    assert kept(tmp_path / "kept").digest == first.digest
    blobs = {blob.digest: blob.annotations for blob in Layout(tmp_path / "kept").snapshots()}
    assert blobs[first.digest][REF] == SNAPSHOT.cell and REF not in blobs[second.digest]


def test_images_of_others_in_the_folder_are_let_alone(tmp_path: Path) -> None:
    for name, content in tiny.oci_files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    image = json.loads((tmp_path / "index.json").read_text())["manifests"]
    made = kept(tmp_path)
    assert [blob.digest for blob in Layout(tmp_path).snapshots()] == [made.digest]
    assert json.loads((tmp_path / "index.json").read_text())["manifests"][:1] == image
    checked = check(Layout(tmp_path))
    assert not checked.problems and len(checked.snapshots) == 1


def test_a_damaged_blob_is_made_whole_by_archiving_again(tmp_path: Path) -> None:
    kept(tmp_path / "kept")
    sha256 = hashlib.sha256(ITEMS[1].content).hexdigest()  # type: ignore[arg-type]
    (tmp_path / "kept" / "blobs" / "sha256" / sha256).write_bytes(b"other")
    assert check(Layout(tmp_path / "kept")).problems
    kept(tmp_path / "kept")
    assert not check(Layout(tmp_path / "kept")).problems


def test_other_bytes_than_the_lock_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=r"a\.whl: its sha256 is") as caught:
        kept(tmp_path / "kept", Item("wheels/python/b/a.whl", b"x", "0" * 64))
    assert "a.whl" in caught.value.message
    assert not list((tmp_path / "kept" / ".tmp").iterdir())


@pytest.mark.parametrize("there", ["a file", "a git repository"])
def test_a_folder_of_other_things_is_left_alone(tmp_path: Path, there: str) -> None:
    if there == "a file":
        (tmp_path / "notes.txt").write_text("mine")
    else:
        (tmp_path / ".git").mkdir()
    before = names(tmp_path)
    with pytest.raises(UsageError, match="holds other files"):
        kept(tmp_path)
    assert names(tmp_path) == before


@pytest.mark.parametrize("name", ["blobs", "blobs/sha256", ".tmp"])
def test_links_that_lead_elsewhere_are_not_followed(tmp_path: Path, name: str) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "kept"
    elsewhere.mkdir()
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a link"):
        kept(folder)
    assert not list(elsewhere.iterdir())


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotReadyError):
        kept(folder)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match="cannot write to"):
        kept(tmp_path / "file" / "kept")


def test_what_is_no_folder_of_snapshots(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of snapshots"):
        Layout(tmp_path).snapshots()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"manifests": 1}', '{"manifests": [1]}', '{"manifests": [{}]}', "[" * 100_000]
)
def test_a_damaged_index(tmp_path: Path, text: str) -> None:
    kept(tmp_path)
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(IntegrityError):
        Layout(tmp_path).snapshots()
    with pytest.raises(IntegrityError):
        kept(tmp_path)  # and it is not written over
    assert (tmp_path / "index.json").read_text() == text


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    layout, said = Layout(tmp_path / "kept"), []

    def waiting(text: str) -> None:
        said.append(text)
        release.set()

    release = threading.Event()
    with writing(layout):
        other = threading.Thread(
            target=lambda: write(Layout(tmp_path / "kept", say=waiting), SNAPSHOT, ITEMS)
        )
        other.start()
        assert release.wait(30)
        assert not layout.path(f"sha256:{'0' * 64}").exists()
    other.join(30)
    assert said == [f"waiting for another tfenv that writes to {tmp_path / 'kept'}"]
    assert len(layout.snapshots()) == 1


# a full disk


def _limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


SCRIPT = """\
    import sys
    from pathlib import Path
    sys.path[:0] = [{tests!r}]
    from snapshots import SNAPSHOT
    from tfenv.errors import TfenvError
    from tfenv.snapshot.archive import write
    from tfenv.snapshot.layout import Layout
    from tfenv.snapshot.parts import Item
    def items():
        for number in range({files}):
            yield Item(f"wheels/python/w{{number}}.whl", bytes([number]) * {size})
            if number == 0: print("begun", flush=True)
    try:
        write(Layout(Path(sys.argv[1])), SNAPSHOT, items())
    except TfenvError as error:
        print(error.message, error.remedy, sep="|")
        sys.exit(error.exit_code)
"""


def script(files: int, size: int) -> str:
    return textwrap.dedent(SCRIPT).format(tests=str(Path(__file__).parent), files=files, size=size)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    before = kept(tmp_path / "kept")
    done = subprocess.run(
        [sys.executable, "-c", script(3, 400_000), str(tmp_path / "kept")],
        preexec_fn=lambda: _limited(300_000),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done
    assert "cannot write to" in done.stdout and "free space" in done.stdout
    assert not list((tmp_path / "kept" / ".tmp").iterdir())
    assert [blob.digest for blob in Layout(tmp_path / "kept").snapshots()] == [before.digest]
    assert not check(Layout(tmp_path / "kept")).problems


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    where = tmp_path / "disk"
    where.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m", "tfenv-test", str(where)]
    if os.geteuid() or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("may not mount here")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_disk_that_fills_up(small_disk: Path) -> None:
    folder = small_disk / "kept"
    before = kept(folder)
    done = subprocess.run(
        [sys.executable, "-c", script(9, 300_000), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4 and "No space left on device" in done.stdout, done
    assert [blob.digest for blob in Layout(folder).snapshots()] == [before.digest]
    checked = check(Layout(folder))
    assert not checked.problems and checked.unused  # whole files, which the next archive takes up


# a kill


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_any_moment_leaves_the_folder_whole(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "kept"
    before = kept(folder) if seed % 2 else None
    argv = [sys.executable, "-c", script(60, 200_000), str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        time.sleep(random.Random(seed).uniform(0, 0.4))
        writer.send_signal(signal.SIGKILL)
    if before:
        assert before.digest in [blob.digest for blob in Layout(folder).snapshots()]
        assert not check(Layout(folder)).problems
    after = kept(folder)
    checked = check(Layout(folder))
    assert after.digest in [blob.digest for blob in Layout(folder).snapshots()]
    assert not checked.problems and not list((folder / ".tmp").iterdir())


@pytest.mark.parametrize("step", range(1, 40))
def test_a_kill_between_any_two_renames(tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every state of the folder that a kill can leave is between two of these calls."""
    folder = tmp_path / "kept"
    before = write(Layout(folder), SNAPSHOT, ITEMS[:1])
    calls = 0

    class Killed(BaseException):
        pass

    def counted(self: Path, *args: object) -> object:
        nonlocal calls
        calls += 1
        if calls >= step:
            raise Killed
        return replace(self, *args)  # type: ignore[arg-type]

    replace = Path.replace
    monkeypatch.setattr(Path, "replace", counted)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)  # what is killed cleans nothing
    try:
        kept(folder)
    except Killed:
        assert [blob.digest for blob in Layout(folder).snapshots()] == [before.digest]
    else:
        assert step > calls
    monkeypatch.undo()
    assert not check(Layout(folder)).problems
    assert kept(folder).digest in [blob.digest for blob in Layout(folder).snapshots()]
