"""A set of libraries serves a release, or there is a reason why not."""

from __future__ import annotations

import pytest
from matrices import made_up
from tfenv.compat.serving import differs, why_not_served


def _of(cuda: str, cudnn: str):  # type: ignore[no-untyped-def]
    return made_up("2.0.0", cuda=cuda, cudnn=cudnn)


@pytest.mark.parametrize(
    ("compiled", "offered"),
    [
        (("11.2", "8.1.0"), ("11.8", "8.6")),
        (("11.2", "8.1.0"), ("11.2.2", "8.1.1.33")),
        (("12.2", "8.9.4"), ("12.2", "8.9")),
        (("12.3", "8.9.6"), ("12.3.101", "8.9.4.25")),  # a lower patch is no lower minor
        (("12.5.1", "9.3.0"), ("12.5", "9.3")),
        (("12.5.1", "9.3.0"), ("12.5.0", "9.3.0.75")),
        (("12.5.1", "9.3.0"), ("12.9", "9.10")),  # 10 is more than 3
        (("11.0", "8.0.4"), ("11.0.3", "8.0.5")),
        (("12.5.1", "9.3.0"), ("12", "9")),
    ],
)
def test_serves(compiled: tuple[str, str], offered: tuple[str, str]) -> None:
    assert why_not_served(_of(*compiled), cuda=offered[0], cudnn=offered[1]) is None


@pytest.mark.parametrize(
    ("compiled", "offered", "words"),
    [
        (("11.8", "8.6.0"), ("12.8", "8.9"), ["11.8", "12.8"]),
        (("12.2", "8.9.4"), ("11.8", "8.9"), ["12.2", "11.8"]),
        (("12.5.1", "9.3.0"), ("12.2", "9.3"), ["12.5.1", "12.2", "older"]),
        (("12.10", "9.3.0"), ("12.9", "9.3"), ["older"]),
        (("11.0", "8.0.4"), ("11.1.1", "8.0.5"), ["11.0", "libcusolver.so.10"]),
        (("12.3", "8.9.6"), ("12.3.2", "9.0.0.312"), ["8.9.6", "libcudnn.so.8", "9.0.0.312"]),
        (("12.5.1", "9.3.0"), ("12.5.1", "9.2.1.18"), ["9.3.0", "9.2.1.18"]),
        (("12.5.1", "9.10.0"), ("12.5.1", "9.3.0"), ["9.10.0"]),
        (("11.2", "8.1.0"), ("11.2.0", "8.0.5"), ["8.1.0", "8.0.5"]),
    ],
)
def test_does_not_serve(compiled: tuple[str, str], offered: tuple[str, str], words: list[str]) -> None:
    why = why_not_served(_of(*compiled), cuda=offered[0], cudnn=offered[1])
    assert why
    assert all(word in why for word in words), why
    assert "ln -s" not in why


def test_what_is_not_given_is_not_judged() -> None:
    assert why_not_served(_of("11.8", "8.6.0"), cuda="", cudnn="") is None
    assert differs(_of("11.8", "8.6.0"), cuda="", cudnn="") is None


@pytest.mark.parametrize(
    ("compiled", "offered", "words"),
    [
        (("11.2", "8.1.0"), ("11.8", "8.6"), ["CUDA 11.2 and cuDNN 8.1.0", "CUDA 11.8 and cuDNN 8.6"]),
        (("12.3", "8.9.6"), ("12.3", "8.9.7.29"), ["cuDNN 8.9.6", "cuDNN 8.9.7.29"]),
        (("12.5.1", "9.3.0"), ("12.5", "9.3.0.75"), []),
        (("12.2", "8.9.4"), ("12.2", "8.9"), []),
    ],
)
def test_differs(compiled: tuple[str, str], offered: tuple[str, str], words: list[str]) -> None:
    said = differs(_of(*compiled), cuda=offered[0], cudnn=offered[1])
    assert (said is not None) == bool(words)
    assert all(word in (said or "") for word in words), said
    if said and len(words) == 2 and "and" not in words[0]:
        assert "CUDA" not in said
