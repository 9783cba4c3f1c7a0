"""Which Docker Engine is here, and can it give the images that everybody else gets?

``probe`` only asks, ``check`` only decides.
"""

from .model import Builder, Completed, Engine, Run
from .probe import clients, keeps_digests, parse_builder, parse_builders, probe, probe_builder, run_command
from .requirements import check, minimum, not_reached, old_store, version_of

__all__ = [
    "Builder",
    "Completed",
    "Engine",
    "Run",
    "check",
    "clients",
    "keeps_digests",
    "minimum",
    "not_reached",
    "old_store",
    "parse_builder",
    "parse_builders",
    "probe",
    "probe_builder",
    "run_command",
    "version_of",
]
