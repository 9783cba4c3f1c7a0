"""What makes the whole of matrix.yaml wrong, though its shape is right: a table of checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .facts import Compiled
from .refusals import matches, project
from .schema import MatrixSpec
from .versions import agrees, minor, order
from .yamlfile import OF_KEY, Location


@dataclass(frozen=True)
class Draft:
    """A matrix of the right shape, and what is known of its releases; text says why nothing is."""

    spec: MatrixSpec
    known: Mapping[str, Compiled | str]


Complaint = tuple[Location, str]


def _references(draft: Draft) -> Iterator[Complaint]:
    if draft.spec.defaults.base not in draft.spec.bases:
        yield ("defaults", "base"), _one_of(draft.spec.defaults.base, "bases", draft.spec.bases)
    for i, row in enumerate(draft.spec.rows):
        if row.cuda_set not in draft.spec.cuda_sets:
            yield ("rows", i, "cuda_set"), _one_of(row.cuda_set, "cuda_sets", draft.spec.cuda_sets)
        for j, base in enumerate(row.bases):
            if base not in draft.spec.bases:
                yield ("rows", i, "bases", j), _one_of(base, "bases", draft.spec.bases)
        if row.default_base and row.default_base not in row.bases:
            where = ("rows", i, "default_base")
            yield where, _one_of(row.default_base, "the row's bases", row.bases)
        if row.default_python and row.default_python not in row.pythons:
            where = ("rows", i, "default_python")
            yield where, _one_of(row.default_python, "the row's pythons", row.pythons)


def _set_names(draft: Draft) -> Iterator[Complaint]:
    for name, cuda_set in draft.spec.cuda_sets.items():
        expected = f"cu{cuda_set.cuda}-cudnn{cuda_set.cudnn}"
        if name != expected:
            yield ("cuda_sets", name, OF_KEY), f'found the name "{name}"; expected "{expected}"'


def _repeated(draft: Draft) -> Iterator[Complaint]:
    seen: dict[str, int] = {}
    for i, row in enumerate(draft.spec.rows):
        release = str(order(row.tensorflow))
        if release in seen:
            message = f"found TensorFlow {row.tensorflow} again; expected one row per release"
            yield ("rows", i, "tensorflow"), f"{message} (the first is rows[{seen[release]}])"
        seen.setdefault(release, i)
        for key, values in (("pythons", row.pythons), ("bases", row.bases)):
            for j, value in enumerate(values):
                if value in values[:j]:
                    yield ("rows", i, key, j), f'found "{value}" again; expected it once'


def _declared_is_compiled(draft: Draft) -> Iterator[Complaint]:
    for i, row in enumerate(draft.spec.rows):
        truth, cuda_set = draft.known[row.tensorflow], draft.spec.cuda_sets.get(row.cuda_set)
        if isinstance(truth, str) or cuda_set is None:
            continue
        if agrees(cuda_set.cuda, truth.cuda) and agrees(cuda_set.cudnn, truth.cudnn):
            continue
        found = f"CUDA {cuda_set.cuda} and cuDNN {cuda_set.cudnn}"
        expected = f"CUDA {truth.cuda} and cuDNN {truth.cudnn}"
        yield (
            ("rows", i, "cuda_set"),
            f"found {found}; expected what TensorFlow {row.tensorflow} was compiled for: "
            f"{expected}, so cu{minor(truth.cuda)}-cudnn{minor(truth.cudnn)}",
        )


def _pinned(draft: Draft) -> Iterator[Complaint]:
    for i, row in enumerate(draft.spec.rows):
        own = f"tensorflow=={row.tensorflow}"
        if "tensorflow" not in map(project, row.requirements):
            yield ("rows", i, "requirements"), f'found no TensorFlow; expected "{own}"'
        for key, texts in (("requirements", row.requirements), ("cuda_wheels", row.cuda_wheels)):
            for j, text in enumerate(texts):
                without_extras = re.sub(r"\[.*\]", "", text)
                if project(text) == "tensorflow" and without_extras != own:
                    yield ("rows", i, key, j), f'found "{text}"; expected the row\'s own release, "{own}"'


def _useful_excludes(draft: Draft) -> Iterator[Complaint]:
    everything = [
        (row.tensorflow, python, base)
        for row in draft.spec.rows
        for python in row.pythons
        for base in row.bases
    ]
    for i, exclude in enumerate(draft.spec.exclude):
        if not (exclude.tensorflow or exclude.python or exclude.base):
            yield ("exclude", i), "found only a reason; expected tensorflow, python or base too"
        elif not any(matches(exclude, *combination) for combination in everything):
            message = "found an exclude that matches no combination of the rows; expected one"
            yield ("exclude", i), f"{message} that does, or none"


Check = Callable[[Draft], Iterator[Complaint]]
CHECKS: tuple[Check, ...] = (
    _references,
    _set_names,
    _repeated,
    _declared_is_compiled,
    _pinned,
    _useful_excludes,
)


def _one_of(found: str, what: str, names: Mapping[str, object] | list[str]) -> str:
    return f'found "{found}"; expected one of {what}: {", ".join(names)}'
