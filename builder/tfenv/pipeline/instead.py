"""What is taken where the locked inputs, or the image that they start from, are no longer to be had."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfenv import digest, images
from tfenv.errors import UsageError
from tfenv.inputs import Inputs, unlocked
from tfenv.model import Environment

from .locks import keep_lock

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.images import Image
    from tfenv.workspace import Workspace


def todays(inputs: Inputs, host: Host) -> Inputs:
    """The same with the Debian packages of today, where the locked ones are no longer to be had."""
    from tfenv.lock import host_resolvers, with_todays_debian
    from tfenv.team.inputs import TeamInputs

    cell = inputs.cell
    if isinstance(inputs, TeamInputs):
        from tfenv.team import flow

        return flow.todays(inputs, host)
    return unlocked(
        cell, with_todays_debian(inputs.lock, host_resolvers(host.env), cell.base.packages_for(cell.python))
    )


def on_stand_in(inputs: Inputs, host: Host) -> Inputs:
    """The same on a stand-in for its base image, for where that cannot be pulled.

    Raises:
        UsageError: the cell starts from no image, or no stand-in can be made for it.
    """
    from tfenv import standin
    from tfenv.index import discover

    cell, lock = inputs.cell, inputs.lock
    if isinstance(cell, Environment):
        raise UsageError(
            f"{cell.name} extends {cell.start.name}, and is not built on a stand-in for its base",
            remedy=f"type: tfenv up {cell.start.name} --stand-in",
        )
    if not lock.base_image or lock.interpreter is None:
        raise UsageError(
            f"{cell.name} starts from no image, so nothing can stand in for it",
            remedy=f"type: tfenv up {cell.name}",
        )
    with host.console.build_view() as on_event:
        made = standin.make_standin(
            lock.base_image, store=host.store, index=discover(host.env), env=host.env, on_event=on_event
        )
    if made.python != cell.python:
        raise UsageError(
            f"the stand-in for {lock.base_image} has Python {made.python}, the cell {cell.python}",
            remedy=f"name the cell with py{made.python} on {cell.base.name}",
        )
    python = standin.interpreter(made, host.store)
    lock = replace(lock, interpreter=python)
    return replace(
        unlocked(cell, lock),
        stand_in=made.image,
        contexts=made.contexts(lock.base_image, lock.base_digest),
    )


def recorded_image(workspace: Workspace, inputs: Inputs, host: Host) -> Image | None:
    """The image of the digest that is recorded for these very inputs, where the engine has it."""
    recorded = digest.read(workspace.folder(inputs.cell))
    if recorded is None or recorded.inputs != inputs.hash:
        return None
    try:
        found = images.find((recorded.manifest,), host.env)
    except UsageError:
        return None
    if found.id != recorded.manifest:  # what that engine calls an image is not its manifest's digest
        return None
    keep_lock(inputs, host)
    return found
