"""What a name means on this machine: the image that it is held back at, else that of its cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfenv import images, pipeline
from tfenv.errors import UsageError
from tfenv.history.moving import held_name, held_words

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.history.model import Event
    from tfenv.images import Image
    from tfenv.model import Cell, Lock
    from tfenv.workspace import Workspace


@dataclass(frozen=True)
class Meant:
    """A cell, and where its image is found.

    Args:
        cell: that of the image, which for a name that is held back may be another one than the name's own.
        names: of the image in the engine, best first.
        held: the event that holds the name back, if one does.
    """

    cell: Cell
    names: tuple[str, ...]
    held: Event | None = None

    def tell(self, host: Host, *, committed: bool = False) -> None:
        """Say so, where the name is held back.

        Args:
            committed: what is committed is taken all the same, as no image of the engine is asked for.
        """
        if self.held:
            instead = f"; what is taken is what is committed for {self.cell.name}" if committed else ""
            host.console.note(f"{held_words(self.held)}{instead}")

    def image(self, env: Mapping[str, str]) -> Image:
        """The image in the engine.

        Raises:
            UsageError: it is not there.
        """
        if self.held and not images.ids(self.names, env)[self.held.name]:
            raise UsageError(
                f"{held_words(self.held)}, which is not here any more",
                remedy=f"let it go: tfenv rollback {self.held.name} --release; "
                f"or name what is committed: {self.cell.name}",
            )
        return images.find(self.names, env, cell=self.cell.name)

    def lock(self, workspace: Workspace, image: Image, host: Host) -> Lock:
        """The lock that the image was built from.

        Raises:
            UsageError: nobody has it.
        """
        try:
            return pipeline.lock_of(workspace, self.cell, image, host, former=bool(self.held))
        except UsageError as error:
            if not self.held:
                raise
            raise UsageError(
                f"{held_words(self.held)}, and the lock of that image is neither committed nor in the store",
                remedy=f"verify it as any image: tfenv verify --image {self.held.name}; "
                f"or name what is committed: {self.cell.name}",
            ) from error


def meant(typed: str, workspace: Workspace, host: Host) -> Meant:
    """What a cell's name or alias means here.

    Raises:
        UsageError: it is no name; says what is nearest.
    """
    (cell,) = workspace.cells((typed,))
    held = held_name(typed, workspace.matrix.repository, host.store.root)
    if held is None:
        return Meant(cell, workspace.image_names(cell))
    if held.cell != cell.name:
        try:
            (cell,) = workspace.cells((held.cell,))
        except UsageError as error:
            raise UsageError(
                f"{held_words(held)}: an image of {held.cell or 'no cell'}, which the matrix does not have",
                remedy=f"verify it as any image: tfenv verify --image {held.name}; "
                f"or let it go: tfenv rollback {held.name} --release",
            ) from error
    return Meant(cell, (held.name,), held)


def all_meant(names: tuple[str, ...], workspace: Workspace, host: Host, *, every: bool) -> tuple[Meant, ...]:
    """What each of the names means, or every cell; each once, in the order given.

    Raises:
        UsageError: nothing is named, or a name is none.
    """
    if every or not names:
        cells = workspace.cells(names, every=every)
        return tuple(Meant(cell, workspace.image_names(cell)) for cell in cells)
    return tuple(dict.fromkeys(meant(name, workspace, host) for name in names))
