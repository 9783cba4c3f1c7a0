"""Take a name back to an earlier image, or let it go again; what it takes of the engine is passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfenv import images
from tfenv.errors import TfenvError, UsageError

from . import state
from .choosing import Choice, choose
from .log import Log
from .model import Event
from .moving import event_of
from .verdicts import Verdicts

if TYPE_CHECKING:
    from tfenv.model import Matrix
    from tfenv.store import Store


class GoneError(TfenvError):
    """The image that a name should go back to is no longer here."""


@dataclass(frozen=True)
class Back:
    """What a rollback did, or would do.

    Args:
        before: digest that the name meant until now; empty for none.
        loaded: the image had to be loaded from the store's archive.
    """

    name: str
    before: str
    choice: Choice
    loaded: bool = False


def full_name(typed: str, matrix: Matrix) -> str:
    """The image name of an alias.

    Raises:
        UsageError: it is a canonical name, which means the committed lock and nothing else.
    """
    name = state.full_name(typed, matrix.repository)
    tag = name.removeprefix(f"{matrix.repository}:")
    for ending in ("", "-unlocked", "-stand-in"):
        cell = tag.removesuffix(ending)
        if any(cell == of.name for of in (*matrix.cells, *matrix.environments)):
            raise UsageError(
                f"{typed} is a canonical name: it means what is committed in images/{cell}, and nothing else",
                remedy=f"take images/{cell} back to an older commit with git, then: tfenv build {cell}; "
                "or roll back an alias of it: tfenv list shows them",
            )
    return name


def roll_back(
    name: str,
    store: Store,
    env: Mapping[str, str],
    verdicts: Verdicts,
    *,
    to: str = "",
    dry_run: bool = False,
) -> Back:
    """Give ``name`` the image that it last meant and that was verified, and hold it there.

    Args:
        to: a day or time, whose image is wanted.

    Raises:
        UsageError: there is nothing to go back to. GoneError: the image is nowhere on this machine.
    """
    log = Log(store.root)
    now = images.ids((name,), env)[name]
    choice = choose(log.read().events, name, now, verdicts, to)
    back = Back(name, now, choice)
    if dry_run:
        return back
    loaded = _bring(name, choice.event, store, env)
    image = images.find((choice.event.after,), env)
    images.tag(image.id, (name,), env)
    why = "tfenv rollback" + (f" --to {to}" if to else "")
    log.append([event_of(name, image, before=now, why=why, verdict=choice.verdict, kind="rolled back")])
    return Back(name, now, choice, loaded)


def _bring(name: str, event: Event, store: Store, env: Mapping[str, str]) -> bool:
    """Have the engine hold the image; says whether it had to be loaded from the store's archive."""
    from tfenv.container import connect
    from tfenv.diff.sides import archive_of

    digest = event.after
    with connect(env) as containers:
        if containers.inspect(digest):
            return False
        archive = archive_of(digest, store)
        if archive is not None:
            images.prove(archive, digest)
            containers.load(archive)
            return True
    cell = event.cell or "CELL"
    raise GoneError(
        f"{name} meant {digest}, which is neither in the engine nor in the store any more; nothing was moved",
        remedy="get it back from its snapshot: tfenv rebuild SNAPSHOT; or from the commit that recorded it:\n"
        f"git log -S{digest} -- images/{cell}/digest.json\n"
        f"check out images/{cell} of that commit, and: tfenv build {cell}",
    )


def release(name: str, canonical: str, store: Store, env: Mapping[str, str]) -> str:
    """Let a name go that was held back, and give it the image of its cell's canonical name, if that is there.

    Returns:
        The digest that it means now.

    Raises:
        UsageError: it is not held.
    """
    log = Log(store.root)
    if name not in state.held(log.read().events):
        raise UsageError(f"{name} is not held back", remedy="see what is: tfenv history")
    ids = images.ids((name, canonical), env)
    target = ids[canonical] or ids[name]
    if target:
        image = images.find((target,), env)
        images.tag(image.id, (name,), env)
    else:
        image = images.Image(name, "", "", "")
    why = "tfenv rollback --release"
    log.append([event_of(name, image, before=ids[name], why=why, verdict="", kind="released")])
    return target
