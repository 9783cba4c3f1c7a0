"""Networks of containers: made for one purpose, without a way out, and removed whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfenv.errors import TfenvError

from .errors import explained
from .leftovers import LABEL, owner


class Networks:
    """The networks of an engine."""

    _api: Any

    @contextmanager
    def network(self, purpose: str) -> Iterator[str]:
        """A network in which containers see each other and nothing else; gives its name.

        Raises:
            NotReadyError: no engine. ContainerError: it makes no network.
        """
        name = f"tfenv-{purpose}-{secrets.token_hex(6)}"
        try:
            with explained():
                self._api.create_network(name, driver="bridge", internal=True, labels={LABEL: owner()})
            yield name
        finally:
            self._remove_network(name)

    def _remove_network(self, name: str, tries: int = 5) -> None:
        import docker.errors

        for left in reversed(range(tries)):
            try:
                with explained(keep=(docker.errors.NotFound,)):
                    self._api.remove_network(name)
                return
            except docker.errors.NotFound:
                return
            except TfenvError:  # a container that is being removed is still in it
                if not left:
                    raise
                time.sleep(0.5)
