"""The command line: look, judge, tell."""

from __future__ import annotations

import argparse
import json
import pkgutil
import re
import sys
import textwrap
from typing import Any, Dict, List, Optional, Sequence

from . import deep, rules
from .looking import look
from .sources import Sources

_MARKS = {"broken": "X", "absent": "-", "limit": "!", "note": "note:"}


def main(arguments: Sequence[str], sources: Optional[Sources] = None) -> int:
    """Print what is found; the exit code says what it comes to: 0 ready, 1 broken, 3 unknown, 4 no GPU."""
    parser = argparse.ArgumentParser(prog="doctor.pyz", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--deep", action="store_true", help="also ask TensorFlow itself, which takes a while")
    parser.add_argument("--host", default="", help="JSON: what is known of the host (gpus, driver)")
    options = parser.parse_args(arguments)
    sources = sources or Sources()
    facts = look(sources, _driver_program())
    facts["host"] = _object(options.host)
    if options.deep:
        facts["deep"] = deep.ask(sources)
    findings = rules.judge(facts)
    code = rules.code(facts, findings)
    if options.json:
        print(json.dumps({"code": code, "found": findings, "facts": facts}, sort_keys=True))
    else:
        print(clean(text(facts, findings, code)))
    return code


def text(facts: Dict[str, Any], findings: List[Dict[str, str]], code: int) -> str:
    """What people read."""
    cuda = facts["driver"].get("cuda") or {}
    names = cuda.get("names") or []
    seen = [
        f"  GPUs             {len(names)}: {', '.join(names)}"
        if names
        else "  GPUs             none that CUDA sees",
        f"  driver           {facts['module'] or 'not seen from here'}"
        + (f", CUDA {cuda['version']}" if cuda.get("version") else ""),
        f"  device nodes     {', '.join(sorted(facts['nodes'])) or 'none'}",
        f"  TensorFlow       {_tensorflow(facts)}",
        f"  Python           {facts['python']}, user {facts['user'].get('uid')}, "
        f"HOME={facts['home'] or 'not set'}",
    ]
    parts = ["\n".join(seen)]
    for one in findings:
        mark = _MARKS[one["grade"]]
        parts.append(
            "\n".join(
                [
                    *_wrapped(f"{one['title']}  [{one['id']}]", f"{mark} ", "  "),
                    *_wrapped(one["cause"], "  why: ", "       "),
                    *_wrapped(one["remedy"], "  do:  ", "       "),
                    f"  see: {one['source']}",
                ]
            )
        )
    words = {
        0: "ready: CUDA sees a GPU in here",
        3: "could not tell why CUDA sees no GPU in here",
        4: "no GPU in here",
    }
    parts.append(words.get(code) or f"begin with this: {findings[0]['title']}")
    return "\n\n".join(parts)


def _tensorflow(facts: Dict[str, Any]) -> str:
    names = [
        f"{n} {v}"
        for n, v in facts["packages"].items()
        if n in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly")
    ]
    told = ", ".join(names) or "not installed for this Python"
    found = facts.get("deep")
    if found and "gpus" in found:
        told += f"; it sees {found['gpus']} GPU(s)"
    return told


def clean(text: str) -> str:
    """Without anything that drives a terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text)


def _wrapped(words: str, first: str, then: str) -> List[str]:
    return textwrap.wrap(
        words,
        110,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _object(text: str) -> Dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _driver_program() -> str:
    return (pkgutil.get_data("tfenv_doctor", "driver.py") or b"").decode("utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
