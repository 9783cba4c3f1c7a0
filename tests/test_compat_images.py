"""What the names of published images say, and when things end."""

from __future__ import annotations

import json
from datetime import date

import pytest
from tfenv import eol, nvidia_images
from tfenv.nvidia_images import Cudnn, parse
from tfenv.resources import facts_dir


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04",
            {"cuda": "12.5.1", "cudnn_name": "cudnn", "flavour": "runtime", "distro": "ubuntu"},
        ),
        ("docker.io/nvidia/cuda:11.8.0-base-ubuntu20.04", {"flavour": "base", "release": "20.04"}),
        ("nvcr.io/nvidia/cuda:12.3.2-cudnn9-devel-ubuntu22.04", {"repository": "nvidia/cuda"}),
        ("nvidia/cuda:12.2.2-base-ubuntu22.04@sha256:ab", {"digest": "sha256:ab", "cuda": "12.2.2"}),
        ("nvidia/cuda:latest", {"repository": "nvidia/cuda", "cuda": ""}),
        ("python:3.12-alpine", {"python": "3.12", "distro": "alpine"}),
        ("python:3.11-slim-bookworm", {"python": "3.11", "distro": "debian", "release": "12"}),
        ("ubuntu:22.04", {"distro": "ubuntu", "release": "22.04"}),
        ("debian:bookworm-slim", {"distro": "debian", "release": "12"}),
        ("debian12", {"distro": "debian", "release": "12", "tag": ""}),
        ("localhost:5000/team/image:1", {"repository": "localhost:5000/team/image", "tag": "1"}),
    ],
)
def test_names(name: str, expected: dict[str, str]) -> None:
    image = parse(name)
    assert {key: getattr(image, key) for key in expected} == expected


def test_exact_cudnn() -> None:
    assert nvidia_images.cudnn(parse("nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04")) == Cudnn(
        versions=("9.2.1.18",)
    )
    inferred = nvidia_images.cudnn(parse("nvidia/cuda:11.0.3-cudnn8-runtime-ubuntu18.04"))
    assert inferred == Cudnn(versions=("8.0.5.39",), inferred_from=("20.04",))
    assert nvidia_images.cudnn(parse("nvidia/cuda:12.3.2-cudnn8-runtime-ubuntu22.04")) is None
    assert nvidia_images.cudnn(parse("nvidia/cuda:12.3.2-base-ubuntu22.04")) is None
    assert nvidia_images.cudnn(parse("nvidia/cuda:99.0.0-cudnn-runtime-ubuntu22.04")) is None


@pytest.mark.parametrize(
    ("tag", "state"),
    [
        ("12.9.1-cudnn-runtime-ubuntu24.04", "supported"),
        ("12.8.0-cudnn-runtime-ubuntu22.04", "unsupported"),
        ("11.2.0-cudnn8-runtime-ubuntu20.04", "removed"),
        ("10.2-cudnn7-devel-ubuntu18.04", "withdrawn"),
        ("9.0-base-ubuntu16.04", "withdrawn"),
        ("11.0.3-cudnn8-runtime-ubuntu18.04", "unlisted"),
        ("12.99.0-base-ubuntu22.04", "unlisted"),
    ],
)
def test_state(tag: str, state: str) -> None:
    assert nvidia_images.state(parse(f"nvidia/cuda:{tag}")) == state


def test_a_tag_that_moved_has_a_history_that_ends_with_what_it_holds() -> None:
    for tag in json.loads((facts_dir() / "nvidia_images.json").read_text())["repushed"]["rows"]:
        image = parse(f"nvidia/cuda:{tag}")
        now = nvidia_images.cudnn(image)
        assert now
        assert nvidia_images.history(image)[-1][1] == now.versions[0]
        assert nvidia_images.digest(image).startswith("sha256:")
    still = parse("nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04")
    assert (nvidia_images.history(still), nvidia_images.digest(still)) == ((), "")


@pytest.mark.parametrize(
    ("name", "floating"),
    [
        ("tensorflow/tensorflow:latest-devel-gpu", True),
        ("tensorflow/tensorflow", True),
        ("nvidia/cuda:latest", True),
        ("tensorflow/tensorflow:nightly-gpu", True),
        ("tensorflow/tensorflow:2.15.0-gpu", False),
        ("python:3.11", False),
        ("debian12", False),
        ("tensorflow/tensorflow:latest@sha256:ab", False),
        ("team/image:latency-test", False),
    ],
)
def test_floating(name: str, floating: bool) -> None:
    assert parse(name).is_floating is floating


def test_what_a_base_brings() -> None:
    gpu, plain = parse("tensorflow/tensorflow:2.7.0-gpu"), parse("python:3.11-slim")
    assert (gpu.brings_cuda, plain.brings_cuda, parse("team/own:1").brings_cuda) == ("yes", "no", "unknown")
    assert parse("nvidia/cuda:12.2.2-base-ubuntu22.04").brings_cuda == "no"
    assert (gpu.sets_nvidia_variables, plain.sets_nvidia_variables) == ("yes", "no")
    assert parse("nvidia/cuda:12.2.2-base-ubuntu22.04").has_python == "no"
    assert (plain.has_python, parse("team/own:1").has_python) == ("yes", "unknown")


def test_ends() -> None:
    day = date(2026, 11, 30)
    assert eol.ended("ubuntu", "20.04", day) == date(2025, 5, 31)
    assert eol.ended("ubuntu", "22.04", day) is None
    assert eol.ended("debian", "11", day) and not eol.ended("debian", "12", day)
    assert eol.ended("driver", "535", day) and not eol.ended("driver", "580", day)
    assert eol.ended("python", "3.9", day) and eol.ended("python", "9.9", day) is None
    for kind in ("ubuntu", "debian", "python", "driver"):
        assert len(eol.source(kind)) > 40
