"""Package index, mirror, registry, proxy and certificates, as they were asked."""

from __future__ import annotations

from tfenv.doctor.evidence import Evidence

from .words import yes


def read(of: Evidence) -> dict[str, str]:
    """``index``, ``mirror``: ok, offline, certificate, refused, proxy; ``proxied``, ``own_ca``."""
    proxied = any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in of.env)
    client = of.files.get("~/.docker/config.json") or next(
        (text for path, text in of.files.items() if path.endswith("/.docker/config.json")), ""
    )
    return {
        "index": of.network.get("index", ""),
        "index_said": of.network.get("index_said", ""),
        "registry": of.network.get("registry", ""),
        "mirror": of.network.get("mirror", ""),
        "mirror_said": of.network.get("mirror_said", ""),
        "proxied": yes(proxied),
        "client_proxied": yes('"proxies": true' in (client or "")),
        "own_ca": yes(
            any(
                name in of.env
                for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
            )
        ),
        "ca_missing": of.network.get("ca_missing", ""),
    }
