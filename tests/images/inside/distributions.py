"""Name and version of every installed distribution, and what its installer left beside it."""

import importlib.metadata
import json

FILES = ("INSTALLER", "direct_url.json", "uv_cache.json", "uv_build.json", "REQUESTED")
found = []
for dist in importlib.metadata.distributions():
    notes = {name: text for name in FILES if (text := dist.read_text(name)) is not None}
    found.append({"name": dist.metadata["Name"], "version": dist.version, "notes": notes})
print(json.dumps(found))
