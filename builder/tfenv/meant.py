"""What a name means on this machine: the image that it is held back at, else that of its cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import UsageError
from tfenv.history.moving import held_name, held_words
from tfenv.runline import ImageMissingError, first_image

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.engine import Run
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

    def tell(self, say: Callable[[str], None], *, committed: bool = False) -> None:
        """Say so, where the name is held back.

        Args:
            committed: what is committed is taken all the same, as no image of the engine is asked for.
        """
        if self.held:
            instead = f"; what is taken is what is committed for {self.cell.name}" if committed else ""
            say(f"{held_words(self.held)}{instead}")

    def image(self, env: Mapping[str, str]) -> Image:
        """The image in the engine.

        Raises:
            UsageError: it is not there.
        """
        from tfenv import images

        if self.held and not images.ids(self.names, env)[self.held.name]:
            raise gone(self.held, self.cell)
        return images.find(self.names, env, cell=self.cell.name)

    def image_name(self, docker: str, run: Run) -> str:
        """The same by its name, told by a docker client.

        Raises:
            UsageError: it is not there.
        """
        try:
            return first_image(self.names, self.cell.name, docker, run)
        except ImageMissingError as error:
            if self.held:
                raise gone(self.held, self.cell) from error
            raise

    def lock(self, workspace: Workspace, image: Image, host: Host) -> Lock:
        """The lock that the image was built from.

        Raises:
            UsageError: nobody has it.
        """
        from tfenv import pipeline

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


def image_meant(typed: str, workspace: Workspace, root: Path) -> Meant:
    """The image that a cell's name or alias means here, of whatever cell: ``cell`` is the name's own.

    Args:
        root: the store's folder, where the history is.

    Raises:
        UsageError: it is no name; says what is nearest.
    """
    (cell,) = workspace.cells((typed,))
    held = held_name(typed, workspace.matrix.repository, root)
    return Meant(cell, workspace.image_names(cell) if held is None else (held.name,), held)


def meant(typed: str, workspace: Workspace, root: Path) -> Meant:
    """The same with the image's cell.

    Raises:
        UsageError: it is no name, or the matrix does not have that cell any more.
    """
    found = image_meant(typed, workspace, root)
    held = found.held
    if held is None or held.cell == found.cell.name:
        return found
    try:
        (cell,) = workspace.cells((held.cell,))
    except UsageError as error:
        raise UsageError(
            f"{held_words(held)}: an image of {held.cell or 'no cell'}, which the matrix does not have",
            remedy=f"verify it as any image: tfenv verify --image {held.name}; "
            f"or let it go: tfenv rollback {held.name} --release",
        ) from error
    return replace(found, cell=cell)


def all_meant(names: tuple[str, ...], workspace: Workspace, root: Path, *, every: bool) -> tuple[Meant, ...]:
    """What each of the names means, or every cell; each once, in the order given.

    Raises:
        UsageError: nothing is named, or a name is none.
    """
    if every or not names:
        cells = workspace.cells(names, every=every)
        return tuple(Meant(cell, workspace.image_names(cell)) for cell in cells)
    return tuple(dict.fromkeys(meant(name, workspace, root) for name in names))


def gone(held: Event, cell: Cell) -> UsageError:
    """That the engine does not have the image any more which a name is held back at."""
    return UsageError(
        f"{held_words(held)}, which is not here any more",
        remedy=f"let it go: tfenv rollback {held.name} --release; or name what is committed: {cell.name}",
    )
