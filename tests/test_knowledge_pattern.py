"""Text with holes: what fits, and what is refused."""

from __future__ import annotations

import pytest
from tfenv.knowledge.pattern import PatternError, parse


def values(pattern: str, line: str) -> dict[str, str] | None:
    return parse(pattern).match(line)


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (
            "loaded {a:version} compiled {b:version}",
            "x Loaded 8.0.5 COMPILED 8.1.0.",
            {"a": "8.0.5", "b": "8.1.0"},
        ),
        ("tensorflow=={v:release}", "tensorflow==2.15.0.post1", {"v": "2.15.0.post1"}),
        ("tensorflow=={v:release}", "tensorflow==2.16.0rc0; extra", {"v": "2.16.0rc0"}),
        (
            "could not ... {lib:libcudnn|libcublas}.so",
            "could not, ah, open libcublas.so",
            {"lib": "libcublas"},
        ),
        ("exit code {n:number}", "exit code 137", {"n": "137"}),
        ("exit code 13", "exit code 137", None),
        ("exit 1", "an exit 1", {}),
        ("exit 1", "sexit 1", None),
        ("^killed$", "Killed ", {}),
        ("^killed$", "was Killed", None),
        ("say {{x}}", "say {x}", {}),
        ("mount {p:path}: full", "mount /a/b(c: full", None),
        ("mount {p:path}: full", "mount /a/b-c: full", {"p": "/a/b-c"}),
        ("CUDA_VISIBLE_DEVICES={bad:nodevice}", "CUDA_VISIBLE_DEVICES=$GPU", {"bad": "$GPU"}),
        ("CUDA_VISIBLE_DEVICES={bad:nodevice}", "CUDA_VISIBLE_DEVICES=0,1", None),
        ("CUDA_VISIBLE_DEVICES={bad:nodevice}", "CUDA_VISIBLE_DEVICES=MIG-a", None),
        ("step took {t:any} in all", "step took 3 s in all of it", {"t": "3 s"}),
    ],
)
def test_match(pattern: str, line: str, found: dict[str, str] | None) -> None:
    assert values(pattern, line) == found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("{a:word}{b:word} text", "separator"),
        ("{a:path}x{b:path} text", "separator"),
        ("text {a:any} and {b:any}", "gap"),
        ("{a:word}", "no text"),
        ("... text", "gap"),
        ("text ...", "gap"),
        ("text {a:nothing}", "no type"),
        ("text {a:word} {a:word}", "two holes are named a"),
        ("text { here", "brace"),
        ("", "gap"),
    ],
)
def test_refused(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=why):
        parse(pattern)


def test_a_line_that_fits_holds_an_anchor() -> None:
    assert parse("{a|b} Loaded {version} of it").anchors == ("loaded",)
    assert parse("{GTX 1660|RTX 5090} a").anchors == ("gtx 1660", "rtx 5090")


def test_regular_expressions_are_text() -> None:
    assert values("a(b|c)+.* here", "a(b|c)+.* here") == {}
    assert values("a(b|c)+.* here", "abc here") is None
