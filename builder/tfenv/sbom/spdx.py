"""A bill as SPDX 2.3 JSON: https://spdx.github.io/spdx-spec/v2.3/."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from tfenv.times import rfc3339

from .cyclonedx import serial
from .model import Bill, Component, Kind, Licence

_NONE = "NOASSERTION"
_PURPOSES: Mapping[Kind, str] = {
    "deb": "LIBRARY",
    "wheel": "LIBRARY",
    "source": "SOURCE",
    "python": "APPLICATION",
    "image": "CONTAINER",
    "system": "OPERATING_SYSTEM",
}


def document(bill: Bill) -> dict[str, Any]:
    """The bill, in a fixed order."""
    ids = [_id(of) for of in bill.components]
    root = "SPDXRef-image"
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": bill.subject,
        "documentNamespace": f"urn:uuid:{serial(bill, 'spdx')}",
        "creationInfo": {
            "created": rfc3339(bill.created),
            "creators": [f"Tool: tfenv-{bill.tool}"],
            "comment": "\n".join(
                [
                    f"Made from the {bill.made_from}.",
                    *(f"Not listed: {gap}." for gap in bill.gaps),
                    *(f"{told}." for told in bill.differences),
                ]
            ),
        },
        "packages": [
            {
                "SPDXID": root,
                "name": bill.subject,
                "versionInfo": bill.version,
                "downloadLocation": _NONE,
                "filesAnalyzed": False,
                "licenseConcluded": _NONE,
                "licenseDeclared": _NONE,
                "copyrightText": _NONE,
                "primaryPackagePurpose": "CONTAINER",
            },
            *(_package(of, id_) for of, id_ in zip(bill.components, ids, strict=True)),
        ],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", root),
            *(
                _relation(root, "CONTAINS", id_) if of.in_image else _relation(id_, "BUILD_TOOL_OF", root)
                for of, id_ in zip(bill.components, ids, strict=True)
            ),
        ],
        "hasExtractedLicensingInfos": _extracted(bill),
    }


def _relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def _id(of: Component) -> str:
    """Letters, digits, dots and hyphens; a hash tells apart what these alone do not."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{of.kind}-{of.name}-{of.version}")
    return f"SPDXRef-{plain[:120]}-{hashlib.sha256(f'{of.key} {of.architecture}'.encode()).hexdigest()[:8]}"


def _package(of: Component, id_: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "SPDXID": id_,
        "name": of.name,
        "versionInfo": of.version,
        "downloadLocation": _NONE,
        "filesAnalyzed": False,
        "licenseConcluded": _NONE,
        "licenseDeclared": of.licence.expression or _NONE,
        "copyrightText": _NONE,
        "primaryPackagePurpose": _PURPOSES[of.kind],
    }
    if of.filename:
        told["packageFileName"] = of.filename
    if of.sha256:
        told["checksums"] = [{"algorithm": "SHA256", "checksumValue": of.sha256}]
    if said := _comment(of.licence):
        told["licenseComments"] = said
    if of.purl:
        told["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": of.purl}
        ]
    told["comment"] = f"Named by the {'lock and the image' if of.where == 'both' else of.where}."
    return told


def _comment(licence: Licence) -> str:
    said = [f"{licence.source}: {', '.join(licence.names)}"] if licence.names else []
    said += [f"text: {licence.file}"] if licence.file else []
    said += ["proprietary"] if licence.proprietary else []
    return "; ".join(said)


def _extracted(bill: Bill) -> list[dict[str, str]]:
    """What each LicenseRef- of the document stands for."""
    found: dict[str, str] = {}
    for of in bill.components:
        for ref in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", of.licence.expression):
            found.setdefault(ref, f"As named by {of.name} {of.version}; its text is in the package itself.")
    return [
        {"licenseId": ref, "name": ref.removeprefix("LicenseRef-"), "extractedText": text}
        for ref, text in sorted(found.items())
    ]
