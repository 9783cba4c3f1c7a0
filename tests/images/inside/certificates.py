"""The certificates of the bundle and of Debian's package, by hash; and where the links of the folder lead."""

import hashlib
import json
import re
import ssl
from pathlib import Path

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
FOLDER = Path("/etc/ssl/certs")
BUNDLE = FOLDER / "ca-certificates.crt"


def hashes(path):
    found = PEM.findall(path.read_text(encoding="utf-8"))
    return [hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() for pem in found]


packaged = [path for path in Path("/usr/share/ca-certificates").rglob("*") if path.is_file()]
told = {
    "bundle": sorted(hashes(BUNDLE)),
    "packaged": sorted(digest for path in packaged for digest in hashes(path)),
    "strange": [str(p) for p in FOLDER.iterdir() if p != BUNDLE and p.resolve() not in packaged],
    "files": [str(path) for path in packaged],
}
print(json.dumps(told))
