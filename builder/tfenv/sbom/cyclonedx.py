"""A bill as CycloneDX 1.6 JSON: https://cyclonedx.org/docs/1.6/json/."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from tfenv.times import rfc3339

from .model import Bill, Component, Kind, Licence

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:tfenv:sbom")
_TYPES: Mapping[Kind, str] = {
    "deb": "library",
    "wheel": "library",
    "source": "library",
    "python": "platform",
    "image": "container",
    "system": "operating-system",
}


def serial(bill: Bill, form: str) -> str:
    """A UUID that is the same for the same bill, whoever makes it and when."""
    told = "\n".join(
        [form, bill.subject, bill.version, bill.made_from, *(repr(of) for of in bill.components)]
    )
    return str(uuid.uuid5(_NAMESPACE, told))


def document(bill: Bill) -> dict[str, Any]:
    """The bill, in a fixed order."""
    refs = [of.key for of in bill.components]
    properties = [
        {"name": "tfenv:made-from", "value": bill.made_from},
        *({"name": "tfenv:not-listed", "value": gap} for gap in bill.gaps),
        *({"name": "tfenv:difference", "value": told} for told in bill.differences),
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial(bill, 'cyclonedx')}",
        "version": 1,
        "metadata": {
            "timestamp": rfc3339(bill.created),
            "tools": {"components": [{"type": "application", "name": "tfenv", "version": bill.tool}]},
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": bill.subject,
                "version": bill.version,
            },
            "properties": properties,
        },
        "components": [_component(of) for of in bill.components],
        "dependencies": [{"ref": "image", "dependsOn": refs}, *({"ref": ref} for ref in refs)],
        "compositions": [
            {"aggregate": "incomplete" if bill.gaps else "complete", "assemblies": ["image"]},
        ],
    }


def _component(of: Component) -> dict[str, Any]:
    told: dict[str, Any] = {
        "type": _TYPES[of.kind],
        "bom-ref": of.key,
        "name": of.name,
        "version": of.version,
        "scope": "required" if of.in_image else "excluded",
    }
    if of.sha256:
        told["hashes"] = [{"alg": "SHA-256", "content": of.sha256}]
    if found := _licences(of.licence):
        told["licenses"] = found
    if of.purl:
        told["purl"] = of.purl
    told["properties"] = [
        {"name": f"tfenv:{name}", "value": value}
        for name, value in (
            ("kind", of.kind),
            ("named-by", of.where),
            ("file", of.filename),
            ("layer", of.layer),
            ("licence-source", of.licence.source),
            ("licence-file", of.licence.file),
            ("licence-names", "; ".join(of.licence.names)),
            ("proprietary", "true" if of.licence.proprietary else ""),
        )
        if value
    ]
    return told


def _licences(licence: Licence) -> list[dict[str, Any]]:
    """One expression, or names; CycloneDX does not take both."""
    if re.fullmatch(r"[A-Za-z0-9.-]+", licence.expression) and not licence.expression.startswith(
        "LicenseRef-"
    ):
        return [{"license": {"id": licence.expression}}]
    if licence.expression and not licence.proprietary:
        return [{"expression": licence.expression}]
    return [{"license": {"name": name}} for name in licence.names]
