"""What differs between two descriptions, by section: each with a difference, without one, and unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tfenv.diff.model import Change, Description, Difference, Entry, Known, LayerSize, Section, unknown
from tfenv.diff.sections import PARTS_OF_ANSWER, compare, differences
from tfenv.diff.stack import agree, framework, stack

SIDE = Description(
    name="a",
    kind="image",
    digest="sha256:1",
    stack=Known({"TensorFlow": "2.15.1", "CUDA": "12.2.140", "cuDNN": "8.9.4.25"}),
    python=Known({"Python": "3.11"}),
    wheels=Known({"numpy": "1.26.4", "absl-py": "2.1.0"}),
    debian=Known({"libc6": "2.36"}),
    base=Known({"system": "debian 12"}),
    asked=Known({"nothing newer than": "2024"}),
    environment=Known({"PATH": "/bin"}),
    settings=Known({"user": "1000"}),
    labels=Known({"dev.tfenv.lock": "x", "team": "vision"}),
    libraries=Known({"libcudnn.so.8": "abc"}),
    entries={"usr/bin/a": Entry("f", 0o755, "0:0", 1, "x")},
    layers=(LayerSize("sha256:1", 10, 20, "COPY"), LayerSize("sha256:2", 5, 6)),
)


def told(before: Description, after: Description) -> Difference:
    return compare(before, after)


def section(key: str, before: Description = SIDE, **changes: Any) -> Section:
    (found,) = [of for of in told(before, replace(SIDE, name="b", **changes)).sections if of.key == key]
    return found


def test_the_same_description_differs_in_nothing() -> None:
    found = told(SIDE, replace(SIDE, name="b", digest="sha256:2"))
    assert not found.differs and not found.identical
    assert all(not of.changes and not of.unknown for of in found.sections)
    assert told(SIDE, replace(SIDE, name="b")).identical


def test_two_sides_without_a_digest_are_not_identical() -> None:
    assert not told(replace(SIDE, digest=""), replace(SIDE, digest="")).identical


def test_what_matters_first_stands_first() -> None:
    keys = [of.key for of in told(SIDE, SIDE).sections]
    assert keys[:3] == ["stack", "python", "wheels"]
    assert keys[-2:] == ["layers", "files"]
    assert len({part.rank for part in PARTS_OF_ANSWER}) == len(PARTS_OF_ANSWER)


OTHER: dict[str, Any] = {
    "stack": {"stack": Known({**SIDE.stack.values, "cuDNN": "9.3.0"})},
    "python": {"python": Known({"Python": "3.12"})},
    "wheels": {"wheels": Known({**SIDE.wheels.values, "numpy": "2.0.0"})},
    "debian": {"debian": Known({"libc6": "2.41"})},
    "base": {"base": Known({"system": "debian 13"})},
    "asked": {"asked": Known({"nothing newer than": "2025"})},
    "environment": {"environment": Known({"PATH": "/usr/bin"})},
    "settings": {"settings": Known({"user": "0"})},
    "labels": {"labels": Known({**SIDE.labels.values, "team": "speech"})},
    "libraries": {"libraries": Known({"libcudnn.so.8": "def"})},
    "files": {"entries": {"usr/bin/a": Entry("f", 0o755, "0:0", 1, "y")}},
    "layers": {"layers": (SIDE.layers[0], LayerSize("sha256:3", 5, 6))},  # type: ignore[index]
}


def test_there_is_a_case_of_every_section() -> None:
    assert set(OTHER) == {part.key for part in PARTS_OF_ANSWER}


@pytest.mark.parametrize("key", OTHER)
def test_a_difference_is_in_its_section_and_no_other(key: str) -> None:
    found = told(SIDE, replace(SIDE, name="b", **OTHER[key]))
    assert [of.key for of in found.sections if of.differs] == [key]
    assert found.differs


TABLES = [part for part in PARTS_OF_ANSWER if part.key not in ("files", "layers")]


@pytest.mark.parametrize("part", TABLES, ids=lambda part: str(part.key))
def test_of_what_one_side_does_not_know_nothing_is_removed_or_added(part: Any) -> None:
    (table,) = part.tables
    changes: dict[str, Any] = {table: unknown("it is so")}
    gone = replace(SIDE, **changes)
    for before, after in ((SIDE, gone), (gone, SIDE)):
        found = next(of for of in told(before, after).sections if of.key == part.key)
        assert not found.differs
        assert found.unknown == "not known of a: it is so"
        assert {of.state for of in found.changes} <= {"unknown before", "unknown after"}


@pytest.mark.parametrize("key", ["files", "layers"])
def test_files_and_layers_of_a_lock_are_unknown(key: str) -> None:
    gone: dict[str, Any] = {"entries" if key == "files" else "layers": None}
    found = section(key, **gone)
    assert not found.differs and "not known of b" in found.unknown
    both = section(key, replace(SIDE, **gone), **gone)
    assert both.unknown.startswith("not known of either")


def test_of_a_table_that_is_not_complete_a_missing_name_is_unknown() -> None:
    part = Known({"PATH": "/bin"}, complete=False)
    assert differences(Known({"PATH": "/bin", "X": "1"}), part) == (Change("X", "unknown after", "1", ""),)
    assert differences(part, Known({"PATH": "/b", "X": "1"})) == (
        Change("PATH", "changed", "/bin", "/b"),
        Change("X", "unknown before", "", "1"),
    )
    assert differences(Known({"X": "1"}), Known({})) == (Change("X", "removed", "1", ""),)
    assert differences(Known({}), Known({"X": "1"})) == (Change("X", "added", "", "1"),)


def test_in_the_stack_versions_agree_as_far_as_both_go_but_not_tensorflows() -> None:
    coarse = Known({"TensorFlow": "2.15.1", "CUDA": "12.2", "cuDNN": "8"})
    assert not section("stack", stack=coarse).differs
    found = section("stack", stack=Known({"TensorFlow": "2.15.1.post1", "CUDA": "12.3", "cuDNN": "8.9.4.25"}))
    assert [of.name for of in found.changes] == ["TensorFlow", "CUDA"]
    assert agree("8.9.4.25", "8.9.4.25-1+cuda12.2") and not agree("12.2", "12.20")


def test_packages_that_break_things_lead() -> None:
    before = Known(dict.fromkeys(["absl-py", "keras", "numpy", "tensorflow", "zipp"], "1"))
    after = Known(dict.fromkeys(before.values, "2"))
    names = [of.name for of in section("wheels", replace(SIDE, wheels=before), wheels=after).changes]
    assert names == ["tensorflow", "numpy", "keras", "absl-py", "zipp"]


def test_labels_that_always_move_come_last() -> None:
    found = section("labels", labels=Known({"dev.tfenv.lock": "y", "team": "speech"}))
    assert [of.name for of in found.changes] == ["team", "dev.tfenv.lock"]


def test_hashes_of_libraries_are_not_shown() -> None:
    found = section("libraries", libraries=Known({"libcudnn.so.8": "def", "libcudnn.so.9": "ghi"}))
    assert found.changes == (
        Change("libcudnn.so.8", "changed", "one content", "another"),
        Change("libcudnn.so.9", "added"),
    )


def test_a_layer_that_both_have_is_no_difference_wherever_it_stands() -> None:
    assert SIDE.layers is not None
    assert not section("layers", layers=tuple(reversed(SIDE.layers))).differs
    found = section("layers", layers=(*SIDE.layers, LayerSize("sha256:3", 1000, 2000, "RUN")))
    assert [(of.name, of.state) for of in found.changes] == [("layer 3: RUN", "added")]
    assert found.notes[0] == "2 and 3 layers, 2 in common"
    assert "+1 kB" in found.notes[1]


def test_other_sizes_of_the_same_layers_are_no_difference() -> None:
    assert SIDE.layers is not None
    assert not section("layers", layers=tuple(replace(of, stored=999) for of in SIDE.layers)).differs


def test_where_the_stack_is_read() -> None:
    nothing = Known({})
    wheels = Known({"tensorflow": "2.15.1", "nvidia-cudnn-cu12": "8.9.4.25"})
    assert stack(wheels, nothing, nothing, nothing).values == {"TensorFlow": "2.15.1", "cuDNN": "8.9.4.25"}
    debs = Known({"cuda-cudart-12-2": "12.2.140-1", "libcudnn8": "8.9.6.50-1+cuda12.2"})
    found = stack(nothing, debs, nothing, nothing).values
    assert found == {"CUDA": "12.2.140-1", "cuDNN": "8.9.6.50-1+cuda12.2"}
    environment = Known({"CUDA_VERSION": "12.2.2", "NV_CUDNN_VERSION": "8.9.6"})
    assert stack(nothing, nothing, environment, nothing).values == {"CUDA": "12.2.2", "cuDNN": "8.9.6"}
    libraries = Known({"libcudart.so.12": "x", "libcudart.so.12.2.140": "x", "libcudnn_ops.so.9": "x"})
    assert stack(nothing, nothing, nothing, libraries).values == {"CUDA": "12.2.140"}
    assert stack(nothing, nothing, nothing, nothing, {"CUDA": "11.8"}).values == {"CUDA": "11.8"}
    assert not stack(unknown("x"), nothing, nothing, nothing).complete


def test_tensorflow_by_another_name() -> None:
    assert framework({"tensorflow": "2.15.1", "tensorflow-estimator": "2.15.0"}) == "2.15.1"
    assert framework({"tf-nightly": "2.16.0.dev1"}) == "2.16.0.dev1 (tf-nightly)"
    assert framework({"tensorflow-gpu": "2.4.0"}) == "2.4.0 (tensorflow-gpu)"
    assert framework({"tensorboard": "2.15"}) == ""
