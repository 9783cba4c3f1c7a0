"""Look at all GPUs once a second, beside what loads them."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from .kernel_log import KernelLog
from .nvml import Nvml, NvmlError

Emit = Callable[["dict[str, Any]"], Any]


class Sampler:
    """Emits ``gpu`` events at the start, ``sample`` events while it runs, ``errors`` and ``xid`` at the end.

    Without NVML it emits one ``unsampled`` event with the reason.

    Args:
        interval: seconds between samples; clock: seconds, whose zero is the caller's.
    """

    def __init__(
        self,
        emit: Emit,
        *,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], Nvml] = Nvml.open,
        log: Callable[[], KernelLog] = KernelLog,
    ) -> None:
        self._emit, self._interval, self._clock, self._load, self._make_log = emit, interval, clock, load, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._nvml: Nvml | None = None

    def __enter__(self) -> Sampler:
        self._log = self._make_log()
        try:
            self._nvml = self._load()
        except NvmlError as error:
            self._emit({"event": "unsampled", "why": str(error)})
            return self
        self._devices = self._nvml.devices()
        self._emit({"event": "driver", "version": self._nvml.driver()})
        for index, device in enumerate(self._devices):
            about = self._nvml.about(device)
            self._emit(dict(about, event="gpu", gpu=index, errors=self._nvml.errors(device)))
        self._watching = self._nvml.watch(self._devices)
        self._thread.start()
        return self

    def __exit__(self, *_exception: Any) -> None:
        self._stop.set()
        if self._nvml is not None:
            self._thread.join(30.0)
            for index, device in enumerate(self._devices):
                self._emit({"event": "errors", "gpu": index, "errors": self._nvml.errors(device)})
        self._finish()
        self._log.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.once()
            self._stop.wait(self._interval)

    def once(self) -> None:
        """One sample of every GPU, and the Xid errors that have come."""
        assert self._nvml is not None
        now = round(self._clock(), 2)
        for index, device in enumerate(self._devices):
            self._emit(dict(self._nvml.sample(device), event="sample", gpu=index, t=now))
        for index, number in self._nvml.xids(self._devices):
            self._emit({"event": "xid", "gpu": index, "xid": number, "t": now, "source": "NVML"})

    def _finish(self) -> None:
        if self._nvml is not None and not self._thread.is_alive():
            self.once()
        for place, number in self._log.xids():
            self._emit({"event": "xid", "gpu": -1, "pci": place, "xid": number, "source": "kernel log"})
        sources = ["kernel log"] if self._log.readable else []
        refused: dict[str, str] = {}
        if self._nvml is not None:
            sources += ["NVML"] if self._watching else []
            refused = dict(self._nvml.refused)
            if not self._thread.is_alive():  # a GPU that is lost can hold the driver for ever
                self._nvml.close()
        self._emit({"event": "sampled", "xid_sources": sources, "refused": refused})
