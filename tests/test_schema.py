"""The schema admits what a matrix may say, and nothing that could leave its place in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tfenv import schema
from tfenv.patterns import EXPECTED
from tfenv.resources import facts_dir

COMMITTED = facts_dir().parent / "matrix.schema.json"
NAMES: dict[str, Any] = {
    "version": (schema.Version, ["12.2", "12.5.1", "8.9"], ["12", "v12.2", "12.2 ", "12.2-1", "١٢.٢"]),
    "release": (
        schema.Release,
        ["2.15.1", "2.15.0.post1", "2.22.0rc0"],
        ["2.15", "2.15.1+cu12", "2.15.1.dev1", "latest", ""],
    ),
    "python": (schema.Python, ["3.9", "3.11"], ["3", "2.7", "3.11.7", "3.x"]),
    "base": (schema.BaseName, ["debian12", "ubuntu22.04"], ["cu12", "py3.11", "debian", "Debian12", "a-b1"]),
    "cuda set": (schema.CudaSetName, ["cu12.2-cudnn8.9"], ["cu12-cudnn8", "cu12.2", "12.2-8.9"]),
    "image": (
        schema.Image,
        [
            "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04",
            f"registry.example.com/nvidia/cuda:12.2.2-base@sha256:{'5' * 64}",
            "mirror.example.com:5000/nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04",
        ],
        [
            "nvidia/cuda",
            "nvidia/cuda:",
            "nvidia/cuda:12 AS x",
            "nvidia/cuda:$TAG",
            "Nvidia/cuda:12",
            "nvidia//cuda:12",
            f"nvidia/cuda@sha256:{'5' * 64}",
            "nvidia/cuda:12@sha256:55",
            f"nvidia/cuda:12@sha256:{'5' * 65}",
        ],
    ),
    "soname": (
        schema.Soname,
        ["libcupti.so.11.2", "libcuda.so", "libstdc.so.6"],
        ["cupti.so.11", "libcupti.so.11.2=x", "lib/x.so.1", "../libx.so", "libx.so.", "libx.a", "libx.so.x"],
    ),
    "package": (schema.Package, ["libstdc++6", "python3.11"], ["Python3", "-x", "a b", "a=1", "x"]),
    "time": (
        schema.Time,
        ["2024-03-20T00:00:00Z", "2024-02-29T23:59:59Z"],
        ["2024-03-20", "2024-02-30T00:00:00Z", "2024-03-20T00:00:00+01:00", "1970-01-01T00:00:00Z"],
    ),
    "requirement": (
        schema.Requirement,
        ["pip", "tensorflow[and-cuda]==2.15.1", "numpy>=1.23,<2", "x~=1.0.*"],
        [
            "pip ; python_version>'3'",
            "a @ file:///etc/passwd",
            "-r other",
            "--index-url=x",
            "pip==",
            "a==$(x)",
        ],
    ),
    "reason": (
        schema.Reason,
        ["TensorFlow's own NCCL is linked in", "größer als nötig"],
        [
            "too short",
            "two\nlines of text",
            'says "quoted" words',
            " starts with a space",
            "uses `ticks` inside",
        ],
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_admitted_and_what_is_not(name: str) -> None:
    kind, good, bad = NAMES[name]
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    for value in good:
        assert adapter.validate_python(value) == value
    for value in bad:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


FORBIDDEN = '\n\r\t\0\x0b\x0c\x1b\x7f\x85\u2028\u2029\u202e\u200b\ufeff"\\$`'
INJECTIONS = [
    "2.15.1\nRUN id",
    "2.15.1\n",
    "debian12\\\nRUN id",
    "12.2$(id)",
    "12.2`id`",
    "3.11\u2028RUN id",
    "3.11\x85",
    "debian12;id",
    "debian12 && id",
    "debian12|id",
    "$HOME",
    "${HOME}",
    "--privileged",
    "'; DROP",
    '"',
    "../../etc/passwd",
    "/etc/passwd",
]


def _texts() -> list[tuple[str, Any]]:
    """Every field that holds text, with the type of its text."""
    found = []
    specs = [
        value
        for value in vars(schema).values()
        if isinstance(value, type) and issubclass(value, schema.BaseModel) and value is not schema.BaseModel
    ]
    for spec in specs:
        for name, field in spec.model_fields.items():
            found.append((f"{spec.__name__}.{name}", field))
    return found


@pytest.mark.parametrize("value", INJECTIONS)
def test_no_field_admits_an_injection(value: str) -> None:
    texts = [
        schema.Version,
        schema.Release,
        schema.Python,
        schema.BaseName,
        schema.CudaSetName,
        schema.Time,
        schema.Requirement,
        schema.Image,
        schema.Soname,
        schema.Package,
    ]
    for kind in texts:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


@given(
    st.text(max_size=20),
    st.sampled_from(FORBIDDEN),
    st.text(max_size=20),
)
def test_no_pattern_admits_a_dangerous_character(before: str, character: str, after: str) -> None:
    for pattern in EXPECTED:
        adapter: TypeAdapter[str] = TypeAdapter(Annotated[str, schema._text(pattern)])
        with pytest.raises(ValidationError):
            adapter.validate_python(before + character + after)


@pytest.mark.parametrize("pattern", EXPECTED)
@pytest.mark.parametrize("good", ["12.2", "2.15.1", "3.11", "debian12", "bookworm", "tfenv", "apt", "a/b"])
def test_no_pattern_admits_a_line_break_after_a_good_value(pattern: str, good: str) -> None:
    adapter: TypeAdapter[str] = TypeAdapter(Annotated[str, schema._text(pattern)])
    for tail in ("\n", "\nRUN id", "\\\n", "\u2028"):
        with pytest.raises(ValidationError):
            adapter.validate_python(good + tail)


def test_every_pattern_says_what_it_expects() -> None:
    patterns = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("pattern"), str):
                patterns.add(part["pattern"])
            for key, value in part.items():
                if key == "patternProperties":
                    patterns.update(value)
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(json.loads(schema.json_schema()))
    assert patterns == set(EXPECTED)


def test_every_field_is_described_for_editors() -> None:
    assert [name for name, field in _texts() if not field.description] == []


def test_the_json_schema_is_the_same_every_time_and_committed() -> None:
    assert schema.json_schema() == schema.json_schema()
    assert COMMITTED.read_text(encoding="utf-8") == schema.json_schema(), (
        f"regenerate: python -m tfenv.schema > {COMMITTED.name}"
    )


def test_the_matrix_names_its_schema_on_the_first_line() -> None:
    root = Path(__file__).resolve().parent.parent
    first = (root / "matrix.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (root / first.partition("=")[2]).resolve() == COMMITTED.resolve()
