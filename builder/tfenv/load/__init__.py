"""Put load on the GPUs from inside an image: ``tfenv stress`` and ``tfenv bench``, the host's side.

The program that runs in the image is ``verifier/tfenv_load``, mounted as one file; here its JSON lines are
collected, judged, drawn and kept.
"""

from .advice import Advice, advise
from .collect import bench_of, events_of, stress_of
from .judging import Judgement, judge
from .model import Bench, Gpu, Row, Sample, Stress
from .pack import pack
from .record import Record, bench_files, load_hash, read_bench, recorded_benches, stress_files, write

__all__ = [
    "Advice",
    "Bench",
    "Gpu",
    "Judgement",
    "Record",
    "Row",
    "Sample",
    "Stress",
    "advise",
    "bench_files",
    "bench_of",
    "events_of",
    "judge",
    "load_hash",
    "pack",
    "read_bench",
    "recorded_benches",
    "stress_files",
    "stress_of",
    "write",
]
