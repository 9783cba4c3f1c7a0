from __future__ import annotations

from pathlib import Path

import pytest
from test_lockfile import LOCK
from tfenv.disk import RESERVE, check_all, check_space, engine_folder, estimate
from tfenv.errors import NotReadyError


def test_enough_space_passes_and_too_little_says_how_much(tmp_path: Path) -> None:
    check_space(tmp_path, 5_000_000_000, lambda _: 5_000_000_000)
    with pytest.raises(NotReadyError, match=r"the store: 5\.0 GB needed at .*, 4\.9 GB free") as caught:
        check_space(tmp_path, 5_000_000_000, lambda _: 4_900_000_000, what="the store")
    assert "tfenv gc" in caught.value.remedy
    assert "docker builder prune" in caught.value.remedy


def test_a_folder_that_is_not_there_yet_is_measured_at_its_parent(tmp_path: Path) -> None:
    asked: list[Path] = []

    def probe(folder: Path) -> int:
        asked.append(folder)
        return 1

    check_space(tmp_path / "a" / "b", 1, probe)
    assert asked == [tmp_path]


def test_the_real_disk_is_asked(tmp_path: Path) -> None:
    check_space(tmp_path, 1)
    with pytest.raises(NotReadyError):
        check_space(tmp_path, 10**18)


def test_folders_on_one_disk_share_it(tmp_path: Path) -> None:
    needs = {tmp_path / "store": 6, tmp_path / "engine": 5}
    check_all(needs, lambda _: 11, lambda _: 1)
    with pytest.raises(NotReadyError, match=r"store and .*engine"):
        check_all(needs, lambda _: 10, lambda _: 1)
    check_all(needs, lambda _: 6, lambda folder: 1 if folder.name == "store" else 2)


def test_a_folder_that_cannot_be_made_is_no_full_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (Path("/proc/x"), tmp_path / "file" / "store", tmp_path / "file"):
        with pytest.raises(NotReadyError, match=f"cannot make the folder {wrong}: ") as caught:
            check_all({wrong: 1}, lambda _: 0)
        assert "set TFENV_CACHE" in caught.value.remedy
    check_all({tmp_path / "new" / "store": 1})
    assert (tmp_path / "new" / "store").is_dir()


def test_what_is_in_the_store_is_not_counted_again() -> None:
    nothing = estimate(LOCK, lambda _sha, _size: False)
    everything = estimate(LOCK, lambda _sha, _size: True)
    # Equal content counts once: all three wheels share a hash here, and both .debs.
    assert nothing.store - everything.store == 5 + 7
    assert nothing.engine == everything.engine > RESERVE


ROOT, SYSTEM = Path("/var/lib/docker"), Path("/var/lib/containerd")
SOCKET = Path("/run/containerd/containerd.sock")


@pytest.mark.parametrize(
    ("there", "owner", "folder"),
    [
        ({ROOT}, 0, ROOT),
        ({ROOT, SYSTEM}, 0, ROOT),  # left over: that containerd does not run
        ({ROOT, SYSTEM, SOCKET}, 0, SYSTEM),
        ({ROOT, SYSTEM, SOCKET}, 1000, ROOT),  # a rootless engine
        ({ROOT, SOCKET}, 0, ROOT),
        ({SYSTEM, SOCKET}, 0, None),  # the engine is elsewhere
    ],
)
def test_an_engine_may_keep_images_with_the_systems_containerd(
    there: set[Path], owner: int, folder: Path | None
) -> None:
    assert engine_folder(ROOT, there.__contains__, lambda _: owner) == folder


def test_this_machine_can_be_asked(tmp_path: Path) -> None:
    assert engine_folder(tmp_path) in (tmp_path, SYSTEM)
    assert engine_folder(tmp_path / "elsewhere") is None
