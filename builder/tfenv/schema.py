"""What may stand in matrix.yaml: its shape and its limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from . import patterns
from .times import instant


def _calendar(value: str) -> str:
    if instant(value).year < 1980:  # wheels are zips
        raise ValueError("no archive can hold a time before 1980")
    return value


def _text(pattern: str) -> StringConstraints:
    return StringConstraints(strict=True, pattern=pattern, max_length=500)


Version = Annotated[str, _text(patterns.VERSION)]
Release = Annotated[str, _text(patterns.RELEASE)]
Python = Annotated[str, _text(patterns.PYTHON)]
BaseName = Annotated[str, _text(patterns.BASE)]
CudaSetName = Annotated[str, _text(patterns.CUDA_SET)]
Time = Annotated[str, _text(patterns.TIME), AfterValidator(_calendar)]
Requirement = Annotated[str, _text(patterns.REQUIREMENT)]
Reason = Annotated[str, _text(patterns.REASON)]
Package = Annotated[str, _text(patterns.PACKAGE)]
Image = Annotated[str, _text(patterns.IMAGE)]
Soname = Annotated[str, _text(patterns.SONAME)]
EnvironmentName = Annotated[str, _text(patterns.ENVIRONMENT)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileRule(_Strict):
    """Files left out of (or kept in) every image, and why."""

    what: Annotated[str, _text(patterns.GLOB)] = Field(
        description="Glob relative to site-packages; ** matches any depth."
    )
    why: Reason = Field(description="Why it may be left out, or must stay.")


class WheelRule(_Strict):
    """A package that is treated apart, and why."""

    what: Annotated[str, _text(patterns.WHEEL)] = Field(description="Distribution name of the wheel.")
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
    suite: Annotated[str, _text(patterns.SUITE)] = Field(description="Code name of the release.")
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
    glibc: Annotated[str, _text(patterns.GLIBC)] = Field(
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

    start: Annotated[str, _text(patterns.CELL)] = Field(
        alias="from", description="The cell that it extends, by name or alias."
    )
    requirements: list[Requirement] = Field(
        default_factory=list, description="The team's packages, resolved together with TensorFlow."
    )
    apt: list[Package] = Field(default_factory=list, description="Debian packages on top of the base's.")
    extras: list[Annotated[str, _text(patterns.WHEEL)]] = Field(
        default_factory=list, description="Ready-made additions: jupyter, devel."
    )
    exclude_newer: Time = Field(
        description="No wheel of the team's uploaded later is locked, but for single ones upgraded since."
    )


class MatrixSpec(_Strict):
    """The TensorFlow GPU environments that exist."""

    repository: Annotated[str, _text(patterns.REPOSITORY)] = Field(
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
