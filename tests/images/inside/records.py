"""What RECORD says against what is there: the sizes of all files, the hashes of the N largest."""

import base64
import csv
import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path


def digest(path, algorithm):
    state = hashlib.new(algorithm)
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            state.update(piece)
    return base64.urlsafe_b64encode(state.digest()).decode().rstrip("=")


files, problems = [], []
for dist in importlib.metadata.distributions():
    label = f"{dist.metadata['Name']} {dist.version}"
    record = dist.read_text("RECORD")
    if not record:
        problems.append(f"{label}: no RECORD")
    for name, recorded, size in csv.reader((record or "").splitlines()):
        path = Path(str(dist.locate_file(name)))
        if not path.exists():
            problems.append(f"{label}: {name} is missing")
        elif size and path.stat().st_size != int(size):
            problems.append(f"{label}: {name} has {path.stat().st_size} bytes, recorded {size}")
        elif recorded:
            files.append((path.stat().st_size, path, recorded))
hashed = 0
for size, path, recorded in sorted(files, reverse=True)[: int(sys.argv[1])]:
    algorithm, _, wanted = recorded.partition("=")
    if digest(path, algorithm) != wanted:
        problems.append(f"{path}: {algorithm} differs")
    hashed += size
print(json.dumps({"problems": problems, "files": len(files), "hashed_bytes": hashed}))
