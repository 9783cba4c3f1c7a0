"""A pasted text as lines that can be compared: without colours, time stamps and progress bars.

Nothing here depends on what the lines say, and nothing takes longer than in proportion to the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from .lines import Line, Text

LONGEST = 2000  # characters of a line; what is longer is read in pieces that overlap
_OVERLAP = 300
HEAD, TAIL = 4 << 20, 12 << 20  # bytes of a file: of a larger one the middle is left out
_LEFT_OUT = "\n[... the middle of this text was left out ...]\n"

_ESCAPES = re.compile(
    r"\x1b\[[0-?]{0,40}[ -/]{0,4}[@-~]"  # colours, the cursor
    r"|\x1b[\]P^_X][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)?"  # titles, links; one line at most
    r"|\x1b[ -/]{0,4}[0-~]?"
    r"|\^\[\[[0-9;]{0,20}[A-Za-z]"  # as `cat -v` writes them
    r"|\[[0-9]{1,2}(?:;[0-9]{1,3}){0,4}m"  # pasted without the escape itself
)
_BREAKS = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]|\x08+")
# Controls, marks that reorder text on a terminal, invisible characters, and halves of pairs.
_CONTROLS = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
_QUOTES = dict(zip("\u2018\u2019\u201c\u201d\u00b4\u2032\u00a0\u2007\u202f", "''\"\"''   ", strict=True))
_ALIKE = 100  # the first and the last of lines that differ in numbers only, as those of a progress bar
#: What stands before a message: times, levels, the names of containers, BuildKit's steps, quotation marks.
_PREFIX = re.compile(
    r"(?:"
    r"[>|] ?"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:? "
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? "
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d [^ ]{1,64} "
    r"|#\d{1,4} (?:\d{1,6}\.\d{1,4} )?"
    r"|[A-Za-z0-9][A-Za-z0-9_.-]{0,63} {1,20}\| "
    r"|(?:stdout|stderr) [FP] "
    r"|\[\d{1,5},\d{1,5}\]<std(?:err|out)>:? ?"
    r"|[IWEF]\d{4} \d\d:\d\d:\d{2,12}\.\d{1,9} {1,8}\d{1,12} "
    r"|\[ {0,6}\d{1,9}\.\d{3,9}\] "
    r"|\(?pid=\d{1,9}\)? "
    r"){1,6}"
)


def read(text: str) -> Text:
    """Lines as they can be compared."""
    clean = _CONTROLS.sub("", "\n".join(_BREAKS.split(_ESCAPES.sub("", text))))
    for mark, plain in _QUOTES.items():  # far quicker than translate
        clean = clean.replace(mark, plain)
    raw = clean.split("\n")
    seen: dict[str, Line] = {}
    for number, line, times in _different(_joined(raw)):
        for piece in _pieces(_bare(line)):
            known = seen.get(piece)
            if known is None:
                seen[piece] = Line(number, piece, piece.lower(), times)
            else:
                seen[piece] = Line(known.number, piece, known.low, known.times + times)
    return Text(tuple(seen.values()))


def decode(data: bytes) -> str:
    """Text of unknown origin: UTF-8, or UTF-16 as PowerShell writes it; what is neither is replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8", errors="replace")


def take(file: BinaryIO) -> str:
    """A whole file or stream; of a large one, its beginning and its end."""
    head = file.read(HEAD)
    tail = b""
    cut = False
    while chunk := file.read(1 << 20):
        tail += chunk
        if len(tail) > 2 * TAIL:
            tail, cut = tail[-TAIL:], True
    if cut or len(tail) > TAIL:
        return f"{decode(head)}{_LEFT_OUT}{decode(tail[-TAIL:])}"
    return decode(head + tail)


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    """Numbered lines; those that a terminal of 80 or more columns has broken are put together again."""
    width = max(map(len, lines), default=0)
    numbered = list(enumerate(lines, start=1))
    full = [line for line in lines if len(line) == width]
    if not 78 <= width <= 240 or len(full) < 3 or len(full) * 4 < len(lines):
        return numbered
    result: list[tuple[int, str]] = []
    before = 0
    for number, line in numbered:
        if before == width and result and len(result[-1][1]) < LONGEST and not _PREFIX.match(line):
            result[-1] = (result[-1][0], result[-1][1] + line)
        else:
            result.append((number, line))
        before = len(line)
    return result


def _different(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
    """Each different line once, with how often it is there; of many that differ in numbers only, some."""
    times = Counter(line for _, line in lines)
    first: dict[str, int] = {}
    for number, line in lines:
        first.setdefault(line, number)
    # All at once, and as bytes: a call for each line takes ten times as long, of text that is not ASCII more.
    told = "\n".join(line[:LONGEST] for line in first).encode("utf-8", "surrogatepass")
    shapes = told.translate(None, delete=b"0123456789").split(b"\n")
    alike, place = Counter(shapes), Counter[bytes]()
    for (line, number), shape in zip(first.items(), shapes, strict=True):
        place[shape] += 1
        if place[shape] <= _ALIKE or place[shape] > alike[shape] - _ALIKE:
            yield number, line, times[line]


def _bare(line: str) -> str:
    line = _unpacked(line.strip())
    prefix = _PREFIX.match(line)
    return " ".join((line[prefix.end() :] if prefix else line).split())


def _unpacked(line: str) -> str:
    """The message of a line of Docker's json-file log."""
    if not line.startswith('{"log":') or len(line) > 1 << 16:
        return line
    try:
        return str(json.loads(line)["log"]).strip()
    except (ValueError, KeyError, TypeError, RecursionError):
        return line


def _pieces(line: str) -> list[str]:
    if len(line) <= LONGEST:
        return [line] if line else []
    step = LONGEST - _OVERLAP
    return [line[at : at + LONGEST] for at in range(0, len(line) - _OVERLAP, step)]
