"""What a reader of the matrix page is told for a release, libraries, GPU and driver."""

from __future__ import annotations

import json

import pytest
from compat_facts import compiled
from tfenv.compat import runs
from tfenv.facts import compiled as committed


def _codes(
    release: str, libraries: tuple[str, str], gpu: str | None, driver: str | None
) -> tuple[str, list[str]]:
    verdict = runs(compiled(release), *libraries, gpu, driver)
    json.dumps(verdict.as_dict())
    return verdict.outcome, [finding.code for finding in verdict.findings if finding.severity != "warn"]


CU118, CU122, CU123 = ("11.8", "8.6"), ("12.2", "8.9"), ("12.3", "8.9")
CU125, CU129 = ("12.5", "9.3"), ("12.9", "9.10")
NO_CODE, NOT_IN_LIBRARIES = "gpu-arch-unsupported-by-wheel", "gpu-not-in-libraries"


@pytest.mark.parametrize(
    ("release", "libraries", "gpu", "driver", "outcome", "codes"),
    [
        ("2.4.4", ("11.0", "8.0"), "8.0", "470.82.01", "runs", []),
        ("2.4.4", ("11.0", "8.0"), "9.0", None, "refused", [NO_CODE, "libraries-older-than-gpu"]),
        ("2.15.1", CU122, "7.0", "535.104.05", "runs", []),
        ("2.15.1", CU122, "8.6", "525.60.13", "limit", ["jit-at-first-use"]),
        ("2.15.1", CU122, "9.0", "580.65.06", "limit", ["jit-at-first-use", "nccl-without-code"]),
        ("2.15.1", CU122, "9.0", "525.60.13", "refused", ["driver-too-old-for-ptx"]),
        ("2.15.1", CU122, "3.7", None, "refused", [NO_CODE, NOT_IN_LIBRARIES, NOT_IN_LIBRARIES]),
        ("2.15.1", CU122, "7.0", "590.44.01", "refused", ["driver-drops-gpu"]),
        ("2.15.1", CU122, "7.0", "470.82.01", "refused", ["driver-too-old"]),
        ("2.15.1", CU122, "7.0", "581.10", "runs", []),
        ("2.10.1", CU118, "8.9", "450.80.02", "runs", []),
        ("2.10.1", ("11.2", "8.1"), "8.9", None, "limit", ["libraries-older-than-gpu"]),
        ("2.10.1", ("11.2", "8.1"), "9.0", None, "refused", ["libraries-older-than-gpu"]),
        ("2.10.1", CU118, "9.0", "580.65.06", "limit", ["jit-at-first-use"]),
        ("2.17.1", CU123, "5.2", None, "refused", [NO_CODE]),
        ("2.16.2", CU123, "5.2", "550.54.14", "runs", []),
        ("2.18.1", CU125, "8.6", "525.60.13", "runs", []),
        ("2.18.1", CU125, "9.0", "535.104.05", "refused", ["driver-too-old-for-ptx"]),
        ("2.18.1", CU125, "9.0", "580.65.06", "limit", ["jit-at-first-use"]),
        ("2.20.0", CU129, "12.0", "580.65.06", "refused", [NO_CODE]),
        ("2.21.0", CU129, "12.0", "580.65.06", "limit", ["jit-at-first-use", "xla-cannot-target-gpu"]),
        ("2.21.0", CU129, "12.0", "555.42.06", "refused", ["driver-older-than-gpu"]),
        ("2.21.0", CU129, "6.0", "580.65.06", "runs", []),
        ("2.21.0", ("12.9", "9.28"), "7.0", "580.65.06", "refused", [NOT_IN_LIBRARIES]),
        ("2.21.0", ("12.9", "9.28"), "7.5", "580.65.06", "runs", []),
        ("2.22.0rc1", CU129, "8.0", None, "unknown", ["gpu-code-not-read"]),
        ("2.21.0", CU129, None, None, "runs", []),
        ("2.21.0", CU129, None, "0", "refused", ["driver-too-old"]),
        ("2.21.0", CU129, "8.7", None, "unknown", ["gpu-unknown"]),
        ("2.18.1", ("12.2", "9.3"), None, None, "refused", ["cuda-minor-mismatch"]),
    ],
)  # fmt: skip
def test_runs(
    release: str,
    libraries: tuple[str, str],
    gpu: str | None,
    driver: str | None,
    outcome: str,
    codes: list[str],
) -> None:
    assert _codes(release, libraries, gpu, driver) == (outcome, codes)


def test_old_kernels_in_new_libraries_do_not_make_blackwell_run() -> None:
    outcome, codes = _codes("2.15.1", CU122, "12.0", "580.65.06")
    assert outcome == "refused"
    assert "gpu-not-in-libraries" in codes


def test_the_gravest_comes_first() -> None:
    verdict = runs(compiled("2.20.0"), "12.9", "9.10", "12.0", "535.104")
    assert verdict.findings[0].severity == "refuse"
    assert "sm_90a" in verdict.sentences[0]


# --- what is known of GPUs, from the committed facts -----------------------------------------------------

R, L, NO = "runs", "limit", "refused"


@pytest.mark.parametrize(
    ("release", "libraries", "answers"),
    [
        ("2.4.4", ("11.0", "8.0"), {"3.5": R, "7.0": R, "7.5": R, "8.0": R, "8.6": L, "9.0": NO, "12.0": NO}),
        ("2.5.3", CU118, {"3.7": R, "6.1": R, "8.0": R, "8.9": R, "9.0": L, "10.0": NO, "12.0": NO}),
        ("2.10.1", CU118, {"3.7": R, "7.5": R, "8.0": L, "8.9": L, "9.0": L, "12.0": NO}),
        ("2.15.1", CU122, {"3.7": NO, "5.2": R, "7.5": R, "8.0": L, "8.9": L, "9.0": L, "12.0": NO}),
        (
            "2.20.0",
            CU125,
            {"5.2": NO, "6.0": R, "7.0": R, "8.6": R, "8.9": R, "9.0": L, "10.0": NO, "12.1": NO},
        ),
        ("2.21.0", CU129, {"5.2": NO, "6.1": R, "7.5": R, "8.0": R, "9.0": L, "10.3": L, "12.0": L}),
    ],
)
def test_gpus_with_the_committed_facts(
    release: str, libraries: tuple[str, str], answers: dict[str, str]
) -> None:
    facts = committed(release)
    assert {gpu: runs(facts, *libraries, gpu, None).outcome for gpu in answers} == answers


@pytest.mark.parametrize(
    ("release", "libraries", "gpu", "floor"),
    [
        ("2.15.1", CU122, "7.0", "525.60.13"),
        ("2.15.1", CU122, "9.0", "530.30.02"),
        ("2.20.0", CU125, "8.9", "525.60.13"),
        ("2.20.0", CU125, "9.0", "555.42.02"),
        ("2.21.0", CU129, "12.0", "570.26"),
        ("2.10.1", CU118, "8.0", "450.80.02"),
    ],
)
def test_driver_floors_with_the_committed_facts(
    release: str, libraries: tuple[str, str], gpu: str, floor: str
) -> None:
    facts = committed(release)
    assert runs(facts, *libraries, gpu, floor).outcome != "refused"
    branch, *rest = floor.split(".")
    older = ".".join([str(int(branch) - 1), *rest])
    assert runs(facts, *libraries, gpu, older).outcome == "refused"


@pytest.mark.parametrize(
    ("gpu", "outcome"),
    [("8.9", "limit"), ("9.0", "refused"), ("10.0", "refused"), ("10.3", "refused"), ("12.1", "refused")],
)
def test_libraries_of_before_a_gpu_run_on_it_only_within_a_major_version(gpu: str, outcome: str) -> None:
    verdict = runs(committed("2.10.1"), "11.2", "8.1", gpu, None)
    assert "libraries-older-than-gpu" in {finding.code for finding in verdict.findings}
    assert verdict.outcome == outcome
