"""Time of `tfenv explain` on a megabyte, start-up included, and against an older commit in the same run.

usage: .venv/bin/python bench/explain.py [COMMIT]

The texts: every example of the rules, each line another, so that as many rules as possible fit and nothing is
there twice; the same on one line; and the log of a training. Old and new take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median

from tfenv.knowledge import library

ROOT = Path(__file__).resolve().parent.parent
SIZE = 1 << 20  # bytes
TURNS = 7


def word(number: int) -> str:
    """A word of letters for each number: lines that differ in digits only count as alike."""
    letters = chr(97 + number % 26)
    return letters if number < 26 else word(number // 26) + letters


def errors() -> Iterator[str]:
    """Every line of every example, over and over, each time with another word."""
    examples = [text for rule in library().rules for text in rule.examples if text[:1] != "@"]
    lines = [line for text in examples for line in text.splitlines() if line.strip()]
    for number in count():
        yield f"{lines[number % len(lines)]} (worker {word(number)})\n"


def glued() -> Iterator[str]:
    """The same without an end of a line."""
    return (line.replace("\n", " ") for line in errors())


def training() -> Iterator[str]:
    """What Keras says while it trains."""
    for step in count():
        yield f"{step % 900}/900 [====>....] - ETA: 9s - loss: 0.{step * 7919 % 999983}\n"


TEXTS: dict[str, Callable[[], Iterator[str]]] = {
    "every known error, each line another": errors,
    "the same on one line": glued,
    "a training": training,
}


def megabyte(lines: Iterator[str]) -> str:
    """As many of them as make a megabyte."""
    found, size = [], 0
    while size < SIZE:
        found.append(next(lines))
        size += len(found[-1].encode())
    return "".join(found)


def seconds(builder: Path, log: Path) -> tuple[float, bytes]:
    """Wall time of the command from that folder's package, and what it said."""
    argv = [sys.executable, "-c", "from tfenv.cli import main; main()", "explain", str(log), "--json"]
    begun = time.perf_counter()
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(builder)}, cwd=ROOT, capture_output=True)
    took = time.perf_counter() - begun
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr.decode())
    return took, done.stdout


def package(commit: str, folder: Path) -> Path:
    """The package of a commit."""
    archive = subprocess.run(
        ["git", "archive", commit, "builder"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "builder"


def main() -> None:
    """Print one line per text."""
    with tempfile.TemporaryDirectory(prefix="tfenv-bench-") as name:
        folder = Path(name)
        before = package(sys.argv[1], folder) if len(sys.argv) > 1 else None
        for what, lines in TEXTS.items():
            log = folder / "pasted.log"
            log.write_text(megabyte(lines()), encoding="utf-8")
            now: list[float] = []
            then: list[float] = []
            answers = set()
            for _ in range(TURNS):
                for builder, times in ((before, then), (ROOT / "builder", now)):
                    if builder is not None:
                        took, answer = seconds(builder, log)
                        times.append(took)
                        answers.add(answer)
            told = f"{what}: {median(now):.2f} s"
            if then:
                same = "the same answer" if len(answers) == 1 else "ANOTHER ANSWER"
                told += f", before {median(then):.2f} s, ratio {median(now) / median(then):.2f}, {same}"
            print(told)


if __name__ == "__main__":
    main()
