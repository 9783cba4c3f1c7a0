"""All there is to say of an environment: what it stands on, what it adds and why, how far it has come."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv import digest
from tfenv.errors import TfenvError, UsageError
from tfenv.history.verdicts import reports
from tfenv.page.evidence import Proof, proofs, standing

from . import flow, why
from .behind import Behind, behind_now
from .extras import extras

if TYPE_CHECKING:
    from tfenv.compat.needs import Needs
    from tfenv.model import Environment
    from tfenv.store import Store
    from tfenv.workspace import Workspace

    from .model import RowPin


@dataclass(frozen=True, kw_only=True)
class About:
    """An environment.

    Args:
        row: the cell that it stands on; pin: that one's image as the lock names it, None without a lock.
        behind: what the lock does not follow any more.
        needs: what it needs of a host; None where facts do not tell.
        extras: each with what it is for.
        wheels, debian: what it adds, each with the reason.
        image: digest of its image; built: ``recorded``, ``here`` (in this machine's store), or empty.
        proofs: what reports say of that image, the newest first; row_proofs: of the row's image.
    """

    name: str
    row: str
    pin: RowPin | None
    behind: Behind | None
    needs: Needs | None
    extras: tuple[tuple[str, str], ...]
    wheels: tuple[why.Package, ...] = ()
    debian: tuple[why.Package, ...] = ()
    image: str = ""
    built: str = ""
    proofs: tuple[Proof, ...] = ()
    row_proofs: tuple[Proof, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """It as data for JSON."""
        told = asdict(self)
        for kind, packages in (("wheels", self.wheels), ("debian", self.debian)):
            told[kind] = [{**asdict(package), "why": package.why} for package in packages]
        told["extras"] = dict(self.extras)
        for kind, found in (("proofs", self.proofs), ("row_proofs", self.row_proofs)):
            told[kind] = [{**asdict(proof), "sentence": proof.sentence} for proof in found]
        return told


def about(workspace: Workspace, cell: Environment, store: Store) -> About:
    """Gather it from what is committed and from this machine's store.

    Raises:
        TfenvError: a lock, a recorded digest or a committed report of the row is damaged.
    """
    team, row = flow.team_lock(workspace, cell), workspace.find_lock(cell.start)
    known = About(
        name=cell.name,
        row=cell.start.name,
        pin=team.row if team else None,
        behind=behind_now(workspace, cell, team) if team else None,
        needs=_needs(cell),
        extras=tuple((name, extras()[name].what) for name in cell.extras),
        row_proofs=standing(workspace.folder(cell.start)).proofs,
    )
    if team is None or row is None:
        return known
    image, built = _image(workspace, cell, store)
    folders = [workspace.folder(cell) / "reports", store.root / "reports"]
    return replace(
        known,
        wheels=why.wheels(cell, team.wheels, row, why.from_store(store)),
        debian=why.debian(cell, team.debian),
        image=image,
        built=built,
        proofs=proofs(reports(folders, image)) if image else (),
    )


def _image(workspace: Workspace, cell: Environment, store: Store) -> tuple[str, str]:
    """The digest of the image that the locks give, and whence it is known."""
    from tfenv import build

    try:
        inputs = flow.uncommitted(workspace, cell)
    except TfenvError:
        return "", ""  # what is wrong is told as what the lock does not follow
    if inputs is None:
        return "", ""
    recorded = digest.read(workspace.folder(cell))
    if recorded is not None and recorded.lock == inputs.lock_hash:
        return recorded.manifest, "recorded"
    found = build.find(inputs, store)
    return (found.digest.manifest, "here") if found else ("", "")


def _needs(cell: Environment) -> Needs | None:
    from tfenv import facts
    from tfenv.compat.needs import needs

    try:
        return needs(facts.compiled(cell.row.tensorflow), cell.cuda_set.cuda, cell.cuda_set.cudnn)
    except UsageError:
        return None
