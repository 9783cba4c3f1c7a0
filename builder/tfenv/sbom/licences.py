"""What wheels and Debian packages say of their licences, in SPDX's words where those mean the same.

Nothing is guessed: what is not said is unknown, and a name such as ``BSD``, which means several licences,
stays that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from functools import cache
from pathlib import Path
from typing import Any

from tfenv.diff.installed import one_line, paragraphs
from tfenv.diff.model import Description, Entry
from tfenv.diff.places import normal

from .model import UNKNOWN, Licence

_SHORT = 60  # characters, and words: a longer "name" is the text itself
_WORDS = 8
_MOST = 60  # names of one component
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9])")
_FILE = re.compile(r"(?:licen[sc]es?/.+|(?:licen[sc]e|copying|eula|notice)[^/]*)", re.IGNORECASE)


@cache
def _facts() -> Any:
    return json.loads(Path(__file__).with_name("licences.json").read_text("utf-8"))


def spdx(name: str) -> str:
    """A licence's name as SPDX has it; empty where it has none that means the same."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    plain = one_line(name)
    if alias := _facts()["aliases"].get(plain.lower()):
        return str(alias)
    try:
        return str(canonicalize_license_expression(plain)) if plain else ""
    except InvalidLicenseExpression:
        return ""


def reference(name: str) -> str:
    """A licence of its own in an SPDX expression: ``LicenseRef-public-domain``."""
    return "LicenseRef-" + (re.sub(r"[^A-Za-z0-9.]+", "-", one_line(name)[:_SHORT]).strip("-") or "unnamed")


def of_metadata(text: str, file: str = "") -> Licence:
    """The licence in a wheel's METADATA: License-Expression, else License, else the classifiers.

    Args:
        file: where the licence's text is, if there is one.
    """
    headers = HeaderParser().parsestr(text)
    listed = (one_line(str(of)) for of in headers.get_all("Classifier", []))
    classifiers = [of for of in listed if of.startswith("License ::") and of != "License :: OSI Approved"]
    stated = str(headers.get("License", "")).strip()
    first = one_line(stated) if len(stated.splitlines()) == 1 else ""  # more lines are its text
    unfree = any(of in _facts()["proprietary"] for of in classifiers) or any(
        word in first.lower() for word in _facts()["proprietary_words"]
    )

    def told(expression: str, names: tuple[str, ...], source: str) -> Licence:
        return Licence(expression, names, f"METADATA: {source}", file, unfree)

    if expression := one_line(str(headers.get("License-Expression", ""))):
        return told(spdx(expression), (expression,), "License-Expression")
    if found := spdx(first):
        return told(found, (first,), "License")
    names = tuple(dict.fromkeys(of.rsplit(" :: ", 1)[-1] for of in classifiers))
    known = [_facts()["classifiers"].get(of, "") for of in classifiers]
    if len(known) == 1 and known[0]:
        return told(known[0], names, "classifier")
    if _is_name(first) and first.upper() != "UNKNOWN":
        return told(reference(first) if unfree else "", (first, *(n for n in names if n != first)), "License")
    if names:
        return told("", names, "classifiers")
    return Licence(file=file, proprietary=unfree, source="METADATA" if stated else "")


def _is_name(text: str) -> bool:
    return bool(text) and len(text) <= _SHORT and len(text.split()) <= _WORDS


def beside(metadata: str, paths: Iterable[str]) -> str:
    """The first of ``paths`` in the folder of a METADATA that holds a licence's text; empty if none."""
    folder = metadata.rpartition("/")[0] + "/"
    found = (path for path in paths if path.startswith(folder) and _FILE.fullmatch(path[len(folder) :]))
    return min(found, default="")


def of_dist_infos(entries: Mapping[str, Entry]) -> dict[str, str]:
    """The licence's text beside each METADATA of an image, by the path of the METADATA."""
    found: dict[str, list[str]] = {}
    for path, entry in entries.items():
        at = path.find(".dist-info/")
        if at >= 0 and entry.kind == "f":
            found.setdefault(path[: at + len(".dist-info/")] + "METADATA", []).append(path)
    return {metadata: beside(metadata, paths) for metadata, paths in found.items()}


def copyright_text(package: str, image: Description) -> str:
    """The copyright file of a Debian package in an image, through the links that packages share it by."""
    path = f"usr/share/doc/{package}/copyright"
    for _ in range(4):
        if (text := image.texts.get(path)) is not None:
            return text
        moved = _followed(path, image.entries or {})
        if moved == path:
            return ""
        path = moved
    return ""


def _followed(path: str, entries: Mapping[str, Entry]) -> str:
    """The path with its first link replaced by what that points to."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        entry = entries.get("/".join(parts[:count]))
        if entry is not None and entry.kind == "l":
            start = [] if entry.content.startswith("/") else parts[: count - 1]
            return normal("/".join([*start, entry.content, *parts[count:]]))
    return path


def of_copyright(text: str) -> Licence:
    """The licences in a Debian copyright file.

    Of a machine-readable one (DEP-5) all that its files have; of free text the common licences it refers to.
    """
    if not text.strip():
        return UNKNOWN
    found = list(paragraphs(text))
    if "format" not in (found[0] if found else {}):
        names = tuple(sorted(set(_COMMON.findall(text))))[:_MOST]
        # Free text: which parts these are for, and whether a later version will do, only a person can read.
        return Licence("", names, f"copyright file: {'names common licences' if names else 'free text'}")
    stated = [of["license"].split("\n")[0].strip() for of in found if "files" in of and "license" in of]
    stated = stated or [of["license"].split("\n")[0].strip() for of in found if "license" in of]
    given = {one_line(name) if _is_name(name) else "text without a name" for name in stated}
    names = tuple(sorted(given))[:_MOST]
    parts = sorted({part for name in names for part in _parts(name)})
    joined = " AND ".join(f"({of})" if " OR " in of and len(parts) > 1 else of for of in parts)
    return Licence(joined, names, "copyright file (DEP-5)") if names else UNKNOWN


def _parts(name: str) -> list[str]:
    """One ``License:`` of DEP-5 as the expressions that all hold: ``and`` binds closer than ``or``.

    One with a comma is not read: what it binds depends on the sentence.
    """
    if "," in name or "and/or" in name:
        return [reference(name)]
    choices = [
        [spdx(of) or reference(of) for of in re.split(r"\s+and\s+", choice, flags=re.IGNORECASE)]
        for choice in re.split(r"\s+or\s+", name, flags=re.IGNORECASE)
    ]
    if len(choices) == 1:
        return choices[0]
    return [" OR ".join(dict.fromkeys(" AND ".join(all_of) for all_of in choices))]
