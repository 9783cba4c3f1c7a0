"""What the commands of a Dockerfile install, clean up and call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .dockerfile import Instruction, Stage

Words = tuple[str, ...]
#: Distributions that are a TensorFlow for GPUs.
TENSORFLOW = ("tensorflow", "tensorflow-gpu", "tf-nightly")
#: Options of pip and uv that take the following word.
_TAKES = re.compile(
    r"-(r|c|i|f|t|e)|--(requirement|constraint|index-url|extra-index-url|find-links|target|prefix|python"
    r"|platform|python-version|index|default-index|trusted-host|cache-dir|timeout|retries|only-binary|no-binary)"
)
_PYTHON_PACKAGE = re.compile(
    r"(python|python3|python3\.\d+)(-(pip|venv|dev|minimal|full|distutils))?|python-is-python3"
)
_BRINGS_PYTHON = re.compile(
    r"conda|mamba|micromamba|pyenv|uv python|python-build-standalone|Python-3|deadsnakes", re.I
)


@dataclass(frozen=True, kw_only=True)
class Pip:
    """One ``pip install``: what it asks for, and whether constraints or requirement files take part."""

    line: int
    asked: tuple[str, ...]
    constrained: bool


def pips(stage: Stage) -> Iterator[Pip]:
    """Every ``pip install`` of a stage (also ``python -m pip`` and ``uv pip``)."""
    for instruction in stage.instructions:
        for words in instruction.commands:
            arguments = _after_pip_install(words)
            if arguments is not None:
                asked, options = _asked(arguments)
                yield Pip(
                    line=instruction.line,
                    asked=asked,
                    constrained=bool({"-c", "--constraint", "-r", "--requirement"} & set(options)),
                )


def debs(instruction: Instruction) -> tuple[str, ...]:
    """The Debian packages that a RUN installs, without versions."""
    found: list[str] = []
    for words in instruction.commands:
        if words[0] in ("apt-get", "apt", "aptitude") and "install" in words:
            after = words[words.index("install") + 1 :]
            found += [re.split(r"[=:/]", word)[0] for word in after if not word.startswith("-")]
    return tuple(found)


def calls_python(words: Words) -> bool:
    """Whether a command needs a python."""
    return bool(re.fullmatch(r"(pip|python)(\d(\.\d+)?)?", words[0]))


def brings_python(instruction: Instruction, words: Words) -> bool:
    """Whether a command, or an instruction that copies, may bring a python."""
    if instruction.word in ("COPY", "ADD"):
        return "--from=" in instruction.text or _BRINGS_PYTHON.search(instruction.text) is not None
    packages = debs(Instruction(line=0, word="RUN", text=" ".join(words)))
    return any(_PYTHON_PACKAGE.fullmatch(name) for name in packages) or bool(
        _BRINGS_PYTHON.search(" ".join(words))
    )


def fills(instruction: Instruction) -> frozenset[str]:
    """The caches that a RUN fills: apt, pip, conda; not those that are mounted or switched off."""
    mounted = " ".join(mount.get("target", mount.get("dst", "")) for mount in instruction.mounts)
    found = set()
    for words in instruction.commands:
        if words[0] in ("apt-get", "apt") and {"update", "install"} & set(words) and "apt" not in mounted:
            found.add("apt")
        pip = _after_pip_install(words)
        off = pip is not None and {"--no-cache-dir", "--no-cache"} & set(pip)
        if pip is not None and not off and "cache" not in mounted and words[0] != "uv":
            found.add("pip")
        if words[0] in ("conda", "mamba") and "install" in words:
            found.add("conda")
    return frozenset(found)


def cleans(instruction: Instruction) -> frozenset[str]:
    """The caches that a RUN empties."""
    found = set()
    for words in instruction.commands:
        text = " ".join(words)
        if (words[0] == "rm" and "/var/lib/apt" in text) or (words[0].startswith("apt") and "clean" in words):
            found.add("apt")
        if (words[0] == "rm" and ".cache" in text) or text.startswith(
            ("pip cache purge", "pip3 cache purge")
        ):
            found.add("pip")
        if words[0] in ("conda", "mamba") and "clean" in words:
            found.add("conda")
    return frozenset(found)


def _after_pip_install(words: Words) -> Words | None:
    rest = list(words)
    if rest[0] == "uv" and rest[1:2] == ["pip"]:
        rest = rest[1:]
    elif re.fullmatch(r"(\S*/)?python(\d(\.\d+)?)?", rest[0]) and "-m" in rest:
        rest = rest[rest.index("-m") + 1 :]
    if not rest or not re.fullmatch(r"(\S*/)?pip(\d(\.\d+)?)?", rest[0]) or "install" not in rest:
        return None
    return tuple(rest[rest.index("install") + 1 :])


def _asked(arguments: Words) -> tuple[tuple[str, ...], tuple[str, ...]]:
    asked, options = [], []
    words = iter(arguments)
    for word in words:
        if word.startswith("-"):
            options.append(word.split("=")[0])
            if _TAKES.fullmatch(word):
                next(words, None)
        elif re.match(r"[A-Za-z0-9]", word):
            asked.append(word)
    return tuple(asked), tuple(options)
