"""A description from a lock, and one from an image that was read; what each cannot tell is unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfenv import render
from tfenv.digest import Digest
from tfenv.lockfile import lock_hash
from tfenv.model import Cell, Environment, Lock, Rule

from . import installed
from .files import merged
from .installed import one_line
from .layout import Image
from .model import Description, Known, LayerSize, unknown
from .stack import stack

_IN_IMAGE = "it is a lock: only the built image tells"
_DECLARED = {"CUDA": "dev.tfenv.cuda", "cuDNN": "dev.tfenv.cudnn"}
_MOST = 2000  # characters of a value of a foreign configuration


def of_lock(cell: Cell, lock: Lock, *, name: str = "", recorded: Digest | None = None) -> Description:
    """What a lock says of the image that it gives.

    Args:
        name: as the user typed it.
        recorded: the digests of the cell's folder; they count if they are of this very lock.
    """
    hashed = lock_hash(lock)
    own = recorded if recorded is not None and recorded.lock == hashed else None
    wheels, debian = wheels_of(lock), debian_of(lock)
    declared = {"CUDA": cell.cuda_set.cuda, "cuDNN": cell.cuda_set.cudnn}
    known_stack = stack(wheels, debian, unknown(_IN_IMAGE), unknown(_IN_IMAGE), declared)
    labels = render.image_labels(cell, lock, hashed, locked=lock.complete)
    of_team = isinstance(cell, Environment)
    if of_team:  # an environment has more, and says something else of itself
        labels.pop("org.opencontainers.image.description")
    return Description(
        name=name or cell.name,
        kind="lock",
        digest=f"sha256:{hashed}",
        stack=known_stack,
        python=_python(cell, lock, debian),
        wheels=wheels,
        debian=debian,
        base=_base(cell, lock),
        asked=_asked(lock),
        environment=Known(render.image_environment(lock), False, _IN_IMAGE),
        settings=unknown(_IN_IMAGE),
        labels=Known(labels, not lock.base_image and not of_team, "its base may have more"),
        libraries=unknown(_IN_IMAGE),
        layers=tuple(
            LayerSize(diff_id, size, None)
            for diff_id, size in zip(own.diff_ids, own.layer_bytes, strict=True)
        )
        if own
        else None,
    )


def with_lock(image: Description, lock: Lock) -> Description:
    """The same image, with what its lock says of it where its files were not kept."""
    wheels, debian = wheels_of(lock), debian_of(lock)
    return replace(
        image,
        wheels=wheels,
        debian=debian,
        asked=_asked(lock),
        stack=stack(wheels, debian, image.environment, image.libraries, _declared(image.labels)),
        python=installed.python(image.entries or {}, debian, image.environment.values),
    )


def wheels_of(lock: Lock) -> Known:
    """The Python packages that a lock puts into the image."""
    return Known({wheel.name: wheel.version for wheel in lock.wheels if wheel.layer != "tool"})


def debian_of(lock: Lock) -> Known:
    """The Debian packages that a lock puts into the image; unknown where its base brings them."""
    if lock.base_image:
        return unknown(f"they are those of {lock.base_image}")
    return Known({package.name: package.version for package in lock.debian})


def _declared(labels: Known) -> dict[str, str]:
    return {part: value for part, name in _DECLARED.items() if (value := labels.values.get(name))}


def _python(cell: Cell, lock: Lock, debian: Known) -> Known:
    build = lock.interpreter.version if lock.interpreter else debian.values.get(f"python{cell.python}", "")
    return Known({"Python": cell.python} | ({"build": build} if build else {}), False, _IN_IMAGE)


def _base(cell: Cell, lock: Lock) -> Known:
    found = re.fullmatch(r"([a-z]+)([0-9.]+)", cell.base.name)
    values = {"system": f"{found[1]} {found[2]}" if found else cell.base.name}
    start = f"{lock.base_image}@{lock.base_digest or 'no digest'}" if lock.base_image else "nothing"
    return Known(values | {"starts from": start})


def _asked(lock: Lock) -> Known:
    def rules(of: tuple[Rule, ...]) -> str:
        return ", ".join(sorted(rule.what for rule in of))

    values = {
        **{f"requirement {re.split(r'[^A-Za-z0-9._-]', text)[0]}": text for text in lock.requirements},
        "nothing newer than": lock.exclude_newer,
        "wheels for": lock.wheel_platform,
        "CUDA from": lock.cuda_from,
        "drivers accepted": lock.require_cuda,
        "left out": rules(lock.trim),
        "kept": rules(lock.keep),
        "not installed": rules(lock.without),
        "second names of libraries": ", ".join(sorted(f"{of.name} -> {of.target}" for of in lock.links)),
        "Debian packages": ", ".join(lock.debian_packages),
        "templates": lock.template,
        "resolver": f"uv {lock.uv}",
    }
    return Known({name: value for name, value in values.items() if value})


def of_image(name: str, image: Image) -> Description:
    """What an image holds, as far as it can be read."""
    config = _object(image.config.get("config"))
    entries, texts = merged(image.layers)
    environment, labels = Known(_environment(config)), Known(_texts(_object(config.get("Labels"))))
    debian, wheels = installed.debian(texts), installed.wheels(texts)
    libraries = installed.libraries(entries)
    return Description(
        name=name,
        kind="image",
        digest=image.digest,
        stack=stack(wheels, debian, environment, libraries, _declared(labels)),
        python=installed.python(entries, debian, environment.values),
        wheels=wheels,
        debian=debian,
        base=installed.system(texts),
        asked=unknown("an image does not say what was asked for"),
        environment=environment,
        settings=Known(_settings(config, image.config)),
        labels=labels,
        libraries=installed.sonames(entries),
        entries=entries,
        layers=_layers(image),
        texts=texts,
        created=one_line(str(image.config.get("created", ""))),
        notes=tuple(sorted({layer.note for layer in image.layers if layer.note})),
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(of: Mapping[str, Any]) -> dict[str, str]:
    return {one_line(str(name)): str(value)[:_MOST] for name, value in of.items()}


def _environment(config: Mapping[str, Any]) -> dict[str, str]:
    listed = config.get("Env")
    pairs = (str(item).partition("=") for item in (listed if isinstance(listed, list) else ()))
    return {one_line(name): value[:_MOST] for name, _, value in pairs if name}


def _settings(config: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, str]:
    """How a container of it starts; empty where it says nothing."""

    def words(value: object) -> str:
        return " ".join(map(str, value))[:_MOST] if isinstance(value, list) else str(value or "")[:_MOST]

    values = {
        "user": words(config.get("User")),
        "entry point": words(config.get("Entrypoint")),
        "command": words(config.get("Cmd")),
        "working folder": words(config.get("WorkingDir")),
        "volumes": ", ".join(sorted(map(str, _object(config.get("Volumes")))))[:_MOST],
        "ports": ", ".join(sorted(map(str, _object(config.get("ExposedPorts")))))[:_MOST],
        "stop signal": words(config.get("StopSignal")),
        "health check": words(_object(config.get("Healthcheck")).get("Test")),
        "platform": f"{whole.get('os', '')}/{whole.get('architecture', '')}"[:_MOST],
    }
    return {name: value for name, value in values.items() if value}


def _layers(image: Image) -> tuple[LayerSize, ...]:
    """The layers by the hash of their content: the stored one changes with the compressor."""
    listed = _object(image.config.get("rootfs")).get("diff_ids")
    ids = [str(of)[:80] for of in listed] if isinstance(listed, list) else []
    if len(ids) != len(image.stored):
        ids = [of.sha256 or of.member[:80] for of in image.stored]
    made = _made_by(image.config, len(ids))
    return tuple(
        LayerSize(one_line(id_), stored.size, layer.size, by)
        for id_, stored, layer, by in zip(ids, image.stored, image.layers, made, strict=True)
    )


def _made_by(config: Mapping[str, Any], count: int) -> list[str]:
    """The step that made each layer; empty where the history does not fit the layers."""
    history = config.get("history")
    steps = [
        one_line(str(step.get("created_by", "")))[:60]
        for step in (history if isinstance(history, list) else ())
        if isinstance(step, dict) and not step.get("empty_layer")
    ]
    return steps if len(steps) == count else [""] * count
