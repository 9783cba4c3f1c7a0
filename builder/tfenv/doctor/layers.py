"""The layers of a host from the bottom up: what each needs below it, and what proves that it is in order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer.

    Args:
        needs: layers without which there is nothing to look at here.
        seen: sentences of what was seen; the first whose values are known is said.
        proof: groups of conditions; where all of one hold, the layer is in order. None: it always is.
        vital: whether *cannot tell* here makes the whole so.
    """

    name: str
    title: str
    needs: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    proof: tuple[tuple[str, ...], ...] = ()
    vital: bool = True


LAYERS: tuple[Layer, ...] = (
    Layer(
        name="hardware",
        title="GPU",
        seen=(
            "{gpus_in_words}[[ ({pci_families})]][[, {nvswitches_in_words}]]",
            "{bus_in_words}[[: {pci_families}]]",
            "none",
        ),
        proof=(("gpu_here in yes",), ("smi in ok",)),
    ),
    Layer(
        name="driver",
        title="driver",
        needs=("hardware",),
        seen=(
            "{driver_version}[[, {module_kind}]][[, serves CUDA {smi_cuda}]]",
            "Windows' own, through /dev/dxg[[ ({wsl})]]",
        ),
        proof=(("module_loaded in yes",), ("smi in ok",), ("wsl in yes", "dxg in yes", "wsl_libcuda in yes")),
    ),
    Layer(
        name="devices",
        title="device nodes",
        needs=("driver",),
        seen=("{nodes_in_words}",),
        proof=(("node_ctl in yes",), ("wsl in yes", "dxg in yes")),
    ),
    Layer(
        name="state",
        title="GPU state",
        needs=("devices",),
        seen=("{state_in_words}",),
        proof=(("smi in ok",),),
    ),
    Layer(
        name="engine",
        title="container engine",
        seen=("Docker Engine {engine_version}[[, {engine_kind}]]", "Podman {podman}", "none{in_container}"),
        proof=(("engine in ok",), ("engine in missing", "container in yes")),
    ),
    Layer(
        name="toolkit",
        title="NVIDIA toolkit",
        needs=("state", "engine"),
        seen=(
            "{toolkit_version}[[, mode {toolkit_mode}]][[, CDI: {cdi_specs}]][[; {tried_in_words}]]",
            "has given this container its GPUs{in_container}",
            "known to the engine as a runtime",
        ),
        proof=(
            ("tried in ok",),
            ("toolkit in yes",),
            ("engine in missing", "container in yes", "smi in ok"),
            ("runtime_known in yes",),
            ("wsl in yes", "docker_desktop in yes"),
        ),
    ),
    Layer(
        name="limits",
        title="limits",
        seen=("{docker_free_gb} GB of disk for images, {shm_in_words}[[, {memory_gb} GB of memory]]",),
        vital=False,
    ),
    Layer(name="network", title="network", seen=("{network_in_words}",), vital=False),
)


def below(name: str) -> tuple[str, ...]:
    """All layers that a layer stands on, the lowest first."""
    needed: list[str] = []
    for layer in LAYERS:
        if layer.name == name:
            for each in layer.needs:
                needed += [*below(each), each]
    return tuple(layer.name for layer in LAYERS if layer.name in needed)
