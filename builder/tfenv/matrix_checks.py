"""What makes the whole of matrix.yaml wrong, though its shape is right: a table of checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from . import nvidia_images
from .compat.serving import differs, why_not_served
from .facts import Compiled
from .refusals import matches, project
from .schema import MatrixSpec, NvidiaSpec
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
        for base, name in row.cuda_set_on.items():
            where: Location = ("rows", i, "cuda_set_on", base)
            if base not in row.bases:
                yield (*where, OF_KEY), _one_of(base, "the row's bases", row.bases)
            if name not in draft.spec.cuda_sets:
                yield where, _one_of(name, "cuda_sets", draft.spec.cuda_sets)
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
        for base in cuda_set.images:
            if not isinstance(draft.spec.bases.get(base), NvidiaSpec):
                images = [n for n, spec in draft.spec.bases.items() if isinstance(spec, NvidiaSpec)]
                yield ("cuda_sets", name, "images", base, OF_KEY), _one_of(base, "the nvidia bases", images)
        for key, texts in (("wheels", cuda_set.wheels), ("tools", cuda_set.tools)):
            for j, text in enumerate(texts):
                if not re.fullmatch(r"nvidia-[a-z0-9-]+==[0-9.]+", text):
                    message = (
                        f'found "{text}"; expected a pinned wheel such as "nvidia-cublas-cu12==12.2.5.6"'
                    )
                    yield ("cuda_sets", name, key, j), message


def _sets_hold(draft: Draft) -> Iterator[Complaint]:
    """A set's images and wheels hold what its name says; of an unlisted image nothing is known."""
    for name, cuda_set in draft.spec.cuda_sets.items():
        for base, text in cuda_set.images.items():
            image = nvidia_images.parse(text)
            inside = nvidia_images.cudnn(image)
            for what, wanted, there in (
                ("CUDA", cuda_set.cuda, (image.cuda,) if image.cuda else ()),
                ("cuDNN", cuda_set.cudnn, inside.versions if inside else ()),
            ):
                if there and not any(agrees(wanted, version) for version in there):
                    message = f"found an image with {what} {' or '.join(there)}; expected {what} {wanted}"
                    yield ("cuda_sets", name, "images", base), message
        for j, text in enumerate(cuda_set.wheels):
            for what, wanted in (("cuda-runtime", cuda_set.cuda), ("cudnn", cuda_set.cudnn)):
                wheel = re.fullmatch(rf"nvidia-{what}-cu\d+==(.+)", text)
                if wheel and not agrees(wanted, wheel[1]):
                    yield (
                        ("cuda_sets", name, "wheels", j),
                        f'found "{text}"; expected {wanted}, as the set says',
                    )


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


def _libraries_serve(draft: Draft) -> Iterator[Complaint]:
    for i, row in enumerate(draft.spec.rows):
        truth = draft.known[row.tensorflow]
        if isinstance(truth, str):
            continue
        named: list[tuple[Location, str]] = [(("rows", i, "cuda_set"), row.cuda_set)]
        named += [(("rows", i, "cuda_set_on", base), name) for base, name in row.cuda_set_on.items()]
        differ = False
        for where, name in named:
            cuda_set = draft.spec.cuda_sets.get(name)
            if cuda_set is None:
                continue
            own = f"cu{minor(truth.cuda)}-cudnn{minor(truth.cudnn)}"
            if name == row.cuda_set and set(row.bases) <= row.cuda_set_on.keys():
                yield where, f"found {name}, which no base of the row uses; expected one that is used"
            elif why := why_not_served(truth, cuda=cuda_set.cuda, cudnn=cuda_set.cudnn):
                yield where, f"found {name}; expected libraries that serve the release, best {own}: {why}"
            elif said := differs(truth, cuda=cuda_set.cuda, cudnn=cuda_set.cudnn):
                differ = True
                if row.other_libraries is None:
                    message = f"found {name}; expected {own}, or the reason in other_libraries: {said}"
                    yield where, message
        # A release of which only the major version of cuDNN is known may well differ.
        if row.other_libraries is not None and not differ and "." in truth.cudnn:
            message = "found a reason for other libraries; expected none: they are what it was compiled for"
            yield ("rows", i, "other_libraries"), message


def _pinned(draft: Draft) -> Iterator[Complaint]:
    for i, row in enumerate(draft.spec.rows):
        for j, text in enumerate(row.requirements):
            if project(text) in ("tensorflow", "pip"):
                message = f'found "{text}"; expected none: the row\'s release and pip are always asked for'
                yield ("rows", i, "requirements", j), message


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
    _sets_hold,
    _repeated,
    _libraries_serve,
    _pinned,
    _useful_excludes,
)


def _one_of(found: str, what: str, names: Mapping[str, object] | list[str]) -> str:
    return f'found "{found}"; expected one of {what}: {", ".join(names)}'
