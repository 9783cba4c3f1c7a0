"""Which GPUs have machine code, what is compiled there, and what they cannot run at all."""

from __future__ import annotations

from typing import Any

from tfenv.audit.kernels import kernel_facts, nccl_sass

MLIR = "the element-wise kernels that MLIR generates"


def group(kernels: str, sass: str, *ptx: tuple[str, str], section: str = ".nv_fatbin") -> dict[str, Any]:
    return {
        "kernels": kernels,
        "section": section,
        "fatbins": 3,
        "sass": sass.split(),
        "ptx": [{"target": target, "isa": isa} for target, isa in ptx],
        "first": "",
    }


def facts(*groups: dict[str, Any]) -> dict[str, Any]:
    return kernel_facts({"tensorflow/lib.so": {"fatbins": list(groups)}})[0]


def test_code_for_all_kernels_is_what_they_have_in_common() -> None:
    found = facts(
        group("element-wise", "5.0 6.0 7.0 7.5", ("sm_80", "7.1")),
        group("compiled", "5.0 6.0 7.0 7.5 8.0", ("sm_80", "8.1")),
        group("nccl", "5.0"),
    )
    assert found == {
        "sass": ["5.0", "6.0", "7.0", "7.5"],
        "ptx": [
            {"from": "8.0", "isa": "7.1", "what": MLIR},
            {"from": "9.0", "isa": "8.1", "what": "every kernel"},
        ],
        "unusable": [],
    }


def test_ptx_of_one_architecture_ends_with_it() -> None:
    found = facts(
        group("element-wise", "6.0 7.0 8.0 8.9", ("sm_90a", "8.5")),
        group("compiled", "6.0 7.0 8.0 8.9 9.0", ("sm_90", "8.3")),
    )
    assert found["ptx"] == [
        {"from": "9.0", "isa": "8.5", "what": MLIR, "until": "9.0"},
        {"from": "10.0", "isa": "8.3", "what": "every other kernel"},
    ]
    assert found["unusable"] == [{"from": "10.0", "what": MLIR, "why": "their PTX is for sm_90a alone"}]


def test_the_newest_ptx_that_a_gpu_needs_counts() -> None:
    found = facts(
        group("element-wise", "8.9", ("sm_90", "8.5")),
        group("compiled", "8.9 9.0", ("sm_90", "8.3")),
    )
    assert [(p["from"], p["isa"]) for p in found["ptx"]] == [("9.0", "8.5"), ("10.0", "8.5")]
    assert "until" not in found["ptx"][0]
    assert found["unusable"] == []


def test_kernels_without_ptx_end_with_their_machine_code() -> None:
    found = facts(group("compiled", "7.5 8.0", ("sm_80", "7.0")), group("element-wise", "7.5 8.0"))
    assert found["ptx"] == [{"from": "9.0", "isa": "7.0", "what": "every other kernel"}]
    assert found["unusable"] == [{"from": "9.0", "what": MLIR, "why": "they have no PTX"}]


def test_what_nothing_loads_does_not_count() -> None:
    found = facts(
        group("compiled", "8.0", ("sm_80", "7.0")),
        group("compiled", "", ("sm_80", "8.9"), section="__nv_relfatbin"),
        group("", "5.0", ("sm_50", "8.9")),
    )
    assert found["sass"] == ["8.0"]
    assert [p["isa"] for p in found["ptx"]] == ["7.0"]


def test_a_library_without_kernels_has_none() -> None:
    assert facts() == {"sass": [], "ptx": [], "unusable": []}


def test_nccl_is_linked_only_where_its_kernels_are_loaded() -> None:
    loaded = {"a": {"fatbins": [group("nccl", "7.0 8.0"), group("compiled", "9.0")]}}
    assert nccl_sass(loaded) == ["7.0", "8.0"]
    assert nccl_sass({"a": {"fatbins": [group("nccl", "7.0", section="__nv_relfatbin")]}}) is None
