"""Package URLs: https://github.com/package-url/purl-spec."""

from __future__ import annotations

from urllib.parse import quote


def purl(kind: str, namespace: str, name: str, version: str, **qualifiers: str) -> str:
    """``pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=bookworm``; qualifiers sorted, empty ones left out."""
    path = "/".join(_quoted(part) for part in (*namespace.split("/"), name) if part)
    told = "&".join(f"{key}={_quoted(value, also='/')}" for key, value in sorted(qualifiers.items()) if value)
    return f"pkg:{kind}/{path}@{_quoted(version)}" + (f"?{told}" if told else "")


def _quoted(text: str, *, also: str = "") -> str:
    return quote(text, safe=f".-_~:{also}")
