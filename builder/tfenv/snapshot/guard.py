"""What a bundle's Dockerfile may do: nothing that reaches beyond the bundle. It may be somebody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from tfenv.errors import IntegrityError

from .names import HOSTILE

# Also keeps out what would be a comment or directive to BuildKit and is none here: `//`, a byte order mark.
_KNOWN = frozenset(
    {"FROM", "ADD", "COPY", "RUN", "ENV", "LABEL", "ARG", "VOLUME", "WORKDIR", "USER", "CMD"}
    | {"ENTRYPOINT", "EXPOSE", "STOPSIGNAL", "SHELL", "HEALTHCHECK"}
)
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_ALLOWANCES = frozenset({"--network=host", "--network=default", "--security=insecure"})
_SOURCE = re.compile(r"--from=(?P<copy>\S+)|[,=]from=(?P<mount>[^,\s]+)", re.IGNORECASE)


def require_closed(dockerfile: str, contexts: Set[str]) -> None:
    """Refuse a Dockerfile that would fetch something while it is built.

    Args:
        contexts: the named contexts that the build gets from the bundle.

    Raises:
        IntegrityError: names the line.
    """
    known = {"scratch", *contexts}
    for line in _lines(dockerfile):
        word = line.split(None, 1)[0].upper()
        if word == "FROM" and (match := _FROM.match(line)):
            if match["image"] not in known:
                raise _open(line, f"the image {match['image']} is not in the bundle")
            if match["stage"]:
                known.add(match["stage"])
        elif word not in _KNOWN:
            raise _open(line, f"{word[:20]!r} is no instruction that is allowed")
        elif word == "ADD" and re.search(r"\s(?:https?|git|ssh)://|\sgit@", line):
            raise _open(line, "it fetches a file")
        if word in ("COPY", "ADD", "RUN"):
            options = line.split(None, 1)[1] if word != "RUN" else " ".join(_options(line))
            for match in _SOURCE.finditer(options):
                name = match["copy"] or match["mount"]
                if name not in known and not name.isdigit():
                    raise _open(line, f"the image {name} is not in the bundle")
        if word == "RUN" and (more := {option.lower() for option in _options(line)} & _ALLOWANCES):
            raise _open(line, f"{more.pop()} asks for more than a build needs")


def _options(line: str) -> Iterator[str]:
    for word in line.split()[1:]:
        if not word.startswith("--"):
            return
        yield word


def _lines(text: str) -> Iterator[str]:
    """Instructions, each on one line; a directive that names another frontend is none that is allowed."""
    whole = ""
    for line in text.splitlines():
        bare = line.strip()
        if re.match(r"#\s*(?:syntax|escape|check)\s*=", bare, re.IGNORECASE):
            raise _open(bare, "it wants another frontend")
        if not bare or bare.startswith("#"):
            continue
        if "<<" in bare and re.match(r"(?:RUN|COPY|ADD)\b.*<<-?[\"']?\w", whole + bare, re.IGNORECASE):
            raise _open(bare, "it has a text of its own inside, which is not read here")
        whole += bare[:-1] + " " if bare.endswith("\\") else bare
        if not bare.endswith("\\"):
            yield whole
            whole = ""
    if whole:
        yield whole


def _open(line: str, why: str) -> IntegrityError:
    return IntegrityError(
        f"the bundle's Dockerfile reaches beyond the bundle: {why}: {line[:100]}", remedy=HOSTILE
    )
