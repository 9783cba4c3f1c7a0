"""A team environment's lock: what is resolved, what stays, and how a conflict is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import small
import teams
from teams import Index, resolvers
from tfenv.errors import UsageError
from tfenv.lock import UPGRADES
from tfenv.team import flow
from tfenv.team.conflict import ConflictError, in_words, least
from tfenv.team.model import TeamLock
from tfenv.workspace import Workspace


def here(tmp_path: Path, text: str = teams.TEXT) -> Workspace:
    return small.workspace(tmp_path, text)


def versions(lock: TeamLock) -> dict[str, str]:
    return {wheel.name: wheel.version for wheel in lock.wheels}


def relock(place: Workspace, index: Index | None = None, **more: object) -> TeamLock:
    _, made = flow.relock(place, teams.environment(place), resolvers=resolvers(index), **more)  # type: ignore[arg-type]
    return made


def write(place: Workspace, lock: TeamLock) -> None:
    flow.write_lock(place, teams.environment(place), lock)


def test_it_holds_only_what_the_row_lacks(tmp_path: Path) -> None:
    place, index = here(tmp_path), Index()
    lock = relock(place, index)
    assert versions(lock) == {"pandas": "2.2.0", "pytz": "2.0", "six": "1.17.0"}
    assert [package.name for package in lock.debian] == ["libgl1"]
    asked, constraints = index.asked[0]
    assert (
        asked == ("pandas", "six") and "tensorflow==2.15.1" in constraints and "uv==0.9.9" not in constraints
    )


def test_it_names_the_image_that_it_stands_on(tmp_path: Path) -> None:
    from tfenv import digest, pipeline

    place = here(tmp_path)
    row = pipeline.committed(place, place.matrix.cells[0])
    lock = relock(place)
    assert (lock.row.cell, lock.row.lock, lock.row.inputs) == (small.CELL, row.lock_hash, row.hash)
    assert lock.row.manifest == "", "nobody has recorded one"
    recorded = digest.Digest(
        inputs=row.hash,
        lock=row.lock_hash,
        manifest=f"sha256:{'a' * 64}",
        config=f"sha256:{'b' * 64}",
        diff_ids=(),
        layer_bytes=(),
        builder="x",
    )
    (place.folder(row.cell) / digest.FILE_NAME).write_text(digest.dump(recorded))
    assert relock(place).row.manifest == recorded.manifest


def test_what_is_locked_stays_without_asking_anybody(tmp_path: Path) -> None:
    place, index = here(tmp_path), Index()
    write(place, relock(place, index))
    again = relock(place, index)
    assert len(index.asked) == 1 and again == flow.team_lock(place, teams.environment(place))
    flow.require_current(place, teams.environment(place))


def test_one_package_is_upgraded_and_nothing_else(tmp_path: Path) -> None:
    place = here(tmp_path)
    old = Index({**teams.INDEX, "pandas": {"2.1.0": ("pytz",)}, "six": {"1.16.0": ()}, "pytz": {"1.0": ()}})
    before = relock(place, old)
    write(place, before)
    assert versions(before) == {"pandas": "2.1.0", "pytz": "1.0", "six": "1.16.0"}
    after = relock(place, packages=["Six"])
    assert versions(after) == {"pandas": "2.1.0", "pytz": "1.0", "six": "1.17.0"}
    assert {**vars(after), "wheels": (), "row": None} == {**vars(before), "wheels": (), "row": None}
    assert after.row == before.row


def test_what_stays_keeps_its_very_file(tmp_path: Path) -> None:
    place = here(tmp_path)
    write(place, before := relock(place))
    more = resolvers(
        wheels=lambda *_: (
            teams.wheel("pandas", "2.2.0"),
            teams.wheel("pytz", "2.0"),
            teams.wheel("six", "2.0"),
        )
    )
    _, after = flow.relock(place, teams.environment(place), packages=["six"], resolvers=more)
    assert [w for w in after.wheels if w.name != "six"] == [w for w in before.wheels if w.name != "six"]


def test_an_upgrade_that_needs_another_says_which(tmp_path: Path) -> None:
    place = here(tmp_path)
    write(place, relock(place, Index({**teams.INDEX, "pandas": {"2.1.0": ("pytz",)}, "pytz": {"1.0": ()}})))

    def refuse(cell: object, row: object, asked: object, constraints: object, newest: str) -> tuple[()]:
        raise UsageError(
            "these requirements cannot be met:\nBecause pandas==2.2.0 depends on pytz>=2 and pytz==1.0",
            remedy="",
        )

    with pytest.raises(ConflictError, match="cannot be upgraded while all else stays") as error:
        flow.relock(place, teams.environment(place), packages=["pandas"], resolvers=resolvers(wheels=refuse))
    assert "--upgrade-package pandas --upgrade-package pytz" in error.value.remedy
    both = relock(place, packages=["pandas", "pytz"])
    assert versions(both) == {"pandas": "2.2.0", "pytz": "2.0", "six": "1.17.0"}


@pytest.mark.parametrize(
    ("name", "why"), [("tensorflow", "it is the cell's"), ("nobody", "it is not locked there")]
)
def test_only_the_teams_own_packages_can_be_upgraded(tmp_path: Path, name: str, why: str) -> None:
    place = here(tmp_path)
    write(place, relock(place))
    with pytest.raises(UsageError, match=why):
        relock(place, packages=[name])


@pytest.mark.parametrize(
    ("old", "new", "half"),
    [
        ("[pandas, six]", "[pandas]", "wheels"),
        ("2024-06-01", "2024-07-01", "wheels"),
        ("[libgl1]", "[libgl1, libx11-6]", "debian"),
    ],
)
def test_a_change_of_what_is_asked_has_to_be_resolved(tmp_path: Path, old: str, new: str, half: str) -> None:
    place = here(tmp_path)
    write(place, relock(place))
    changed = here(tmp_path, teams.TEXT.replace(old, new))
    with pytest.raises(UsageError, match="asks for something else") as error:
        relock(changed)
    assert "tfenv lock vision --upgrade" in error.value.remedy
    with pytest.raises(UsageError):
        relock(changed, upgrade={"debian" if half == "wheels" else "wheels"})
    assert relock(changed, upgrade={half})
    with pytest.raises(UsageError, match=r"does not follow|asks for something else"):
        flow.require_current(changed, teams.environment(changed))


def test_a_row_with_other_packages_has_to_be_resolved_beside(tmp_path: Path) -> None:
    from dataclasses import replace

    from tfenv import render
    from tfenv.files import write_all
    from tfenv.lock import write_lock

    place = here(tmp_path)
    write(place, relock(place))
    cell = place.matrix.cells[0]
    row = place.lock(cell)
    moved = replace(row, wheels=tuple(w for w in row.wheels if w.name != "nvidia-cublas-cu12"))
    write_lock(moved, place.images)
    write_all(place.folder(cell), render.render(cell, moved))
    with pytest.raises(UsageError, match="has other packages than when it was locked"):
        relock(place)
    assert relock(place, upgrade=set(UPGRADES)).row.packages


def test_a_conflict_says_who_wants_what_and_what_would_fit(tmp_path: Path) -> None:
    place = here(tmp_path, teams.TEXT.replace("[pandas, six]", "['pandas>=3', six]"))
    with pytest.raises(ConflictError) as error:
        relock(place)
    assert "pandas>=3 cannot be installed beside 2.15.1" in error.value.message
    assert "pip==24.0 (the cell's)" in error.value.message
    assert error.value.remedy == "ask for pandas==2.2.0 (the newest that fits) in place of pandas>=3"


def test_a_package_that_is_nowhere_is_to_be_left_out(tmp_path: Path) -> None:
    place = here(tmp_path, teams.TEXT.replace("[pandas, six]", "[pandas, nobody]"))
    with pytest.raises(ConflictError, match="nobody cannot be installed") as error:
        relock(place)
    assert error.value.remedy.startswith("leave out nobody")


def test_the_fewest_that_cannot_be_met() -> None:
    def works(asked: tuple[str, ...]) -> dict[str, str] | None:
        return None if {"a", "c"} <= set(asked) else {}

    assert least(("a", "b", "c", "d"), works) == ("a", "c")
    many = tuple(str(n) for n in range(100))
    assert least(many, works) == many, "each costs a run of the resolver"


def test_of_the_cells_own_pins_it_is_said_that_they_are() -> None:
    said = (
        "these requirements cannot be met:\nerror: No solution\n"
        "  cause: Because x{sys_platform == 'linux'}==2.0 depends on numpy==1.26.4 and six==1.16.0, "
        "numpy==1.26.40, you require x"
    )
    told = in_words(said, ["numpy==1.26.4", "six==1.16.0"], "cell")
    assert "numpy==1.26.4 (the cell's)" in told and "six==1.16.0 (the cell's)" in told
    assert "numpy==1.26.40," in told and "sys_platform" not in told and "you ask for x" in told
    assert "error:" not in told


def test_a_second_cuda_is_refused(tmp_path: Path) -> None:
    place = here(tmp_path, teams.TEXT.replace("[pandas, six]", "[foreign]"))
    with pytest.raises(UsageError, match=r"second CUDA: nvidia-cublas-cu11==11\.0"):
        relock(place)


def test_debian_packages_need_a_debian_base(tmp_path: Path) -> None:
    import matrices

    text = matrices.with_ubuntu(f"{matrices.IMAGE}@{matrices.DIGEST}", only=True) + teams.OWN
    place = here(tmp_path, text)
    with pytest.raises(UsageError, match="packages tfenv does not lock"):
        relock(place)
    without = here(tmp_path, text.replace("    apt: [libgl1]\n", ""))
    assert relock(without).debian == ()
