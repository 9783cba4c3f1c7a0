"""What may stand in matrix.yaml: its shape, its limits, and the words for what was expected.

The patterns admit no space, quote, backslash, dollar sign, line break or other character that could
end an instruction of a Dockerfile or a word of a shell: values go from here into generated files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from .times import instant

# [0-9] and not \d: to pydantic's engine \d is any digit of Unicode.
_VERSION = r"^[0-9]{1,4}(\.[0-9]{1,4}){1,3}$"
_RELEASE = r"^[0-9]{1,4}(\.[0-9]{1,4}){2}((rc|\.post)[0-9]{1,3})?$"
_PYTHON = r"^3\.[0-9]{1,2}$"
# Three letters first, so that no base is mistaken for the cu12 or py3.11 of a tag.
_BASE = r"^[a-z]{3,20}[0-9][0-9.]{0,9}$"
_CUDA_SET = r"^cu[0-9]{1,4}(\.[0-9]{1,4}){1,2}-cudnn[0-9]{1,4}(\.[0-9]{1,4}){1,2}$"
_REPOSITORY = (
    r"^([a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?/)?"
    r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*){0,4}$"
)
_SUITE = r"^[a-z][a-z0-9-]{1,30}$"
_PACKAGE = r"^[a-z0-9][a-z0-9+.-]{1,60}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
_CLAUSE = r"(===?|~=|!=|<=|>=|<|>)[0-9][A-Za-z0-9.+*]{0,30}"
_REQUIREMENT = (
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}(\[[a-z0-9-]+(,[a-z0-9-]+)*\])?"
    rf"({_CLAUSE}(,{_CLAUSE}){{0,5}})?$"
)
_GLIBC = r"^2\.[0-9]{1,3}$"
_IMAGE = (
    r"^([a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?/)?[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*){0,4}"
    r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$"
)
_SONAME = r"^lib[A-Za-z0-9_]+\.so(\.[0-9]{1,4}){0,4}$"
_WHEEL = r"^[a-z0-9]+(-[a-z0-9]+){0,8}$"
_GLOB = r"^[A-Za-z0-9_*?][A-Za-z0-9_.*?+-]*(/[A-Za-z0-9_*?][A-Za-z0-9_.*?+-]*)*$"
# No digit first: what begins with one is a cell's name or alias.
_ENVIRONMENT = r"^[a-z][a-z0-9]{0,20}([._-][a-z0-9]{1,20}){0,4}$"
_CELL = r"^[a-z0-9][a-z0-9._-]{0,80}$"
# Control, line-separating, invisible and direction-changing characters, and what a shell expands.
_UNPRINTABLE = r"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff" + '"\\\\$`'
_REASON = rf"^[^\s{_UNPRINTABLE}][^{_UNPRINTABLE}]{{9,399}}$"

#: What a value that does not match a pattern should have been.
EXPECTED = {
    _VERSION: 'a version such as "12.2"',
    _RELEASE: "a release such as 2.15.1, 2.15.0.post1 or 2.22.0rc0",
    _PYTHON: 'a Python version such as "3.11"',
    _BASE: "a name such as debian12: lower-case letters, then a version",
    _CUDA_SET: "a name such as cu12.2-cudnn8.9",
    _REPOSITORY: "an image repository such as tfenv or registry.example.com:5000/team/tfenv",
    _SUITE: "a code name such as bookworm",
    _PACKAGE: "a Debian package name such as libstdc++6",
    _TIME: "a time in UTC such as 2024-03-20T00:00:00Z",
    _REQUIREMENT: 'a requirement without spaces such as "tensorflow[and-cuda]==2.15.1"',
    _GLIBC: "a version of the GNU C library such as 2.35",
    _IMAGE: "an image with a tag, such as nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04, and best its digest",
    _SONAME: "the soname of a library such as libcupti.so.11.2",
    _WHEEL: "a normalised distribution name such as nvidia-nccl-cu12",
    _GLOB: "a relative path or glob such as nvidia/*/include/**",
    _ENVIRONMENT: "a name such as vision or vision-2: "
    "lower-case letters and digits, in parts joined by - . or _",
    _CELL: "the name or an alias of a cell, such as 2.15-cu12",
    _REASON: "a reason in plain words, on one line, of 10 to 400 characters, without double quotes, "
    "backslashes, dollar signs and backticks",
}


def _calendar(value: str) -> str:
    if instant(value).year < 1980:  # wheels are zips
        raise ValueError("no archive can hold a time before 1980")
    return value


def _text(pattern: str) -> StringConstraints:
    return StringConstraints(strict=True, pattern=pattern, max_length=500)


Version = Annotated[str, _text(_VERSION)]
Release = Annotated[str, _text(_RELEASE)]
Python = Annotated[str, _text(_PYTHON)]
BaseName = Annotated[str, _text(_BASE)]
CudaSetName = Annotated[str, _text(_CUDA_SET)]
Time = Annotated[str, _text(_TIME), AfterValidator(_calendar)]
Requirement = Annotated[str, _text(_REQUIREMENT)]
Reason = Annotated[str, _text(_REASON)]
Package = Annotated[str, _text(_PACKAGE)]
Image = Annotated[str, _text(_IMAGE)]
Soname = Annotated[str, _text(_SONAME)]
EnvironmentName = Annotated[str, _text(_ENVIRONMENT)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileRule(_Strict):
    """Files left out of (or kept in) every image, and why."""

    what: Annotated[str, _text(_GLOB)] = Field(
        description="Glob relative to site-packages; ** matches any depth."
    )
    why: Reason = Field(description="Why it may be left out, or must stay.")


class WheelRule(_Strict):
    """A package that is treated apart, and why."""

    what: Annotated[str, _text(_WHEEL)] = Field(description="Distribution name of the wheel.")
    why: Reason = Field(description="Why nothing needs it, or why it has to be another way.")


class Defaults(_Strict):
    """What the short tags, such as 2.15 and latest, mean where a row does not say otherwise."""

    base: BaseName = Field(description="The base of tags without a base.")
    python: Python | None = Field(
        default=None, description="The Python of tags without one; default: the row's highest."
    )


class BaseSpec(_Strict):
    """What images start from.

    A Python that neither ``pythons`` nor ``provided_pythons`` names is not offered on the base.
    """

    provided_pythons: list[Python] = Field(
        default_factory=list,
        description="Python versions taken from the provider in builder/tfenv/facts/pythons.json.",
    )


class DebianSpec(BaseSpec):
    """A base bootstrapped from Debian packages; CUDA comes from NVIDIA's wheels."""

    kind: Literal["debian"] = Field(description="debian: bootstrapped from Debian packages.")
    suite: Annotated[str, _text(_SUITE)] = Field(description="Code name of the release.")
    pythons: dict[Python, list[Package]] = Field(
        default_factory=dict, description="Python versions the base brings, and by which packages."
    )
    epoch: Time = Field(description="Files of the base layer are never dated later than this.")
    packages: list[Package] = Field(
        min_length=1, description="Debian packages wanted beside the essential ones."
    )


class NvidiaSpec(BaseSpec):
    """An Ubuntu of the nvidia/cuda images; a CUDA set says which image, and so whether it brings CUDA."""

    kind: Literal["nvidia"] = Field(description="nvidia: an nvidia/cuda image of this Ubuntu.")
    glibc: Annotated[str, _text(_GLIBC)] = Field(
        description="The base's C library, which decides what wheels run on it, e.g. 2.35."
    )


#: Every kind of base, and its shape.
BASE_KINDS: Mapping[str, type[BaseSpec]] = {"debian": DebianSpec, "nvidia": NvidiaSpec}


class LinkSpec(_Strict):
    """A second name for a library, and why."""

    name: Soname = Field(description="The name that is opened, e.g. libcupti.so.11.2.")
    target: Soname = Field(description="The soname that exists, e.g. libcupti.so.11.8.")
    why: Reason = Field(description="Why the name is needed and the target serves.")


class CudaSetSpec(_Strict):
    """CUDA and cuDNN libraries that rows share: one set, one image layer."""

    cuda: Version = Field(description="CUDA version, e.g. 12.2.")
    cudnn: Version = Field(description="cuDNN version, e.g. 8.9.")
    epoch: Time = Field(
        description="Upper bound of the layer's file times; no wheel of the set is newer than this."
    )
    wheels: list[Requirement] = Field(
        default_factory=list,
        description="NVIDIA's wheels, pinned, for bases that bring no CUDA. None: there are none.",
    )
    images: dict[BaseName, Image] = Field(
        default_factory=dict,
        description="The nvidia/cuda image by base, with @sha256:... where its digest is known.",
    )
    tools: list[Requirement] = Field(
        default_factory=list,
        description="Pinned wheels of what images with CUDA libraries lack: ptxas, libdevice, CUPTI.",
    )
    links: list[LinkSpec] = Field(default_factory=list, description="Second names of libraries.")
    without: list[WheelRule] = Field(
        default_factory=list, description="Wheels of the set that nothing loads."
    )


class RowSpec(_Strict):
    """One TensorFlow release with the CUDA and cuDNN that it was compiled for."""

    tensorflow: Release = Field(description="The release, e.g. 2.15.1.")
    cuda_set: CudaSetName = Field(description="One of cuda_sets: the libraries in the image.")
    cuda_set_on: dict[BaseName, CudaSetName] = Field(
        default_factory=dict, description="Other libraries on some of the bases."
    )
    other_libraries: Reason | None = Field(
        default=None,
        description="Why libraries serve that are newer than what the release was compiled for.",
    )
    pythons: list[Python] = Field(min_length=1, description="Pythons to cross with the bases.")
    bases: list[BaseName] = Field(min_length=1, description="Bases to cross with the Pythons.")
    default_base: BaseName | None = Field(
        default=None, description="The base of this row's tags without a base."
    )
    default_python: Python | None = Field(
        default=None, description="The Python of this row's tags without one."
    )
    exclude_newer: Time | None = Field(
        default=None,
        description="No wheel uploaded later is locked. Default: 00:00 UTC on the eighth day after "
        "the release's upload.",
    )
    requirements: list[Requirement] = Field(
        default_factory=list,
        description="What is asked of the resolver beside TensorFlow, the CUDA set and pip.",
    )
    from_source: list[WheelRule] = Field(
        default_factory=list,
        description="Packages of Python code taken as source archives: their version has no wheel.",
    )
    trim: list[FileRule] = Field(
        default_factory=list, description="Files left out, beside those of the whole matrix."
    )
    keep: list[FileRule] = Field(
        default_factory=list, description="Files that stay although trim names them."
    )


class ExcludeSpec(_Strict):
    """A combination that is refused; what is not given matches anything."""

    tensorflow: Release | None = Field(default=None, description="The release.")
    python: Python | None = Field(default=None, description="The Python version.")
    base: BaseName | None = Field(default=None, description="The base.")
    why: Reason = Field(description="The reason, shown to whoever asks for the combination.")


class EnvironmentSpec(_Strict):
    """A team's own environment: a cell, and the team's packages in layers on top of its image."""

    start: Annotated[str, _text(_CELL)] = Field(
        alias="from", description="The cell that it extends, by name or alias."
    )
    requirements: list[Requirement] = Field(
        default_factory=list, description="The team's packages, resolved together with TensorFlow."
    )
    apt: list[Package] = Field(default_factory=list, description="Debian packages on top of the base's.")
    extras: list[Annotated[str, _text(_WHEEL)]] = Field(
        default_factory=list, description="Ready-made additions: jupyter, devel."
    )
    exclude_newer: Time = Field(
        description="No wheel of the team's uploaded later is locked, but for single ones upgraded since."
    )


class MatrixSpec(_Strict):
    """The TensorFlow GPU environments that exist."""

    repository: Annotated[str, _text(_REPOSITORY)] = Field(
        description="Image repository, the part of an image's name before the colon."
    )
    defaults: Defaults = Field(description="What short tags mean.")
    bases: dict[BaseName, Annotated[DebianSpec | NvidiaSpec, Field(discriminator="kind")]] = Field(
        min_length=1, description="What images start from."
    )
    cuda_sets: dict[CudaSetName, CudaSetSpec] = Field(
        min_length=1, description="CUDA and cuDNN libraries, by cu<CUDA>-cudnn<cuDNN>."
    )
    trim: list[FileRule] = Field(default_factory=list, description="Files left out of every image.")
    rows: list[RowSpec] = Field(min_length=1, description="One per TensorFlow release.")
    exclude: list[ExcludeSpec] = Field(
        default_factory=list, description="Combinations of the rows that are refused."
    )
    environments: dict[EnvironmentName, EnvironmentSpec] = Field(
        default_factory=dict, description="The team's own environments, each on top of a cell."
    )


def json_schema() -> str:
    """The JSON Schema of matrix.yaml, the same text every time; editors complete and check with it."""
    schema = MatrixSpec.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "matrix.yaml of tfenv"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(json_schema(), end="")
