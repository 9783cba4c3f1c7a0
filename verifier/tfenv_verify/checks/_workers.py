"""One step of MultiWorkerMirroredStrategy as one of its workers: what multi_worker runs in children."""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import Any, Sequence

from .. import meeting
from ..context import Context
from ..devices import take
from ..protocol import say
from ._strategy import all_reduce, nccl_speaks, one_device, step

_ELEMENTS = {True: 1 << 22, False: 1 << 16}  # of the all-reduce, on a GPU and without
_COURTESY_SECONDS = 20.0


def part(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    """Measure as worker ``arguments["worker"]`` of ``arguments["cluster"]``, with ``implementation``.

    ``weights`` are this worker's after a step, ``one_device`` those of one device after the same one on the
    whole global batch and ``exact`` in float64; ``wrong_elements`` those of an all-reduce over the workers;
    ``device`` is where a replica really computes.
    """
    index, cluster = int(arguments["worker"]), [str(address) for address in arguments["cluster"]]
    prepare(context, index, cluster)
    import tensorflow as tf

    device = take(tf, context)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    say("multi_worker: the workers' servers meet")
    strategy = _strategy(tf, str(arguments["implementation"]))
    count, mine = int(strategy.num_replicas_in_sync), str(strategy.extended.worker_devices[0])
    say(f"multi_worker: a step of {count} replicas, here on {mine}")
    (weights,) = step(tf, strategy, count)
    say("multi_worker: an all-reduce")
    elements = _ELEMENTS[device.is_gpu]
    wrong, seconds = all_reduce(tf, strategy, elements)
    found = {
        "replicas": count,
        "device": _placed(tf, strategy),
        "weights": weights,
        "one_device": one_device(tf, count, mine, "float32"),
        "exact": one_device(tf, count, _cpu(mine), "float64"),
        "wrong_elements": wrong[0],
        "elements": elements,
        "gigabytes_per_second": round(4.0 * elements * 2.0 * (count - 1) / count / seconds / 1e9, 2),
    }
    meeting.all_done([str(address) for address in arguments["done"]], index, _COURTESY_SECONDS)
    # What TensorFlow's server and NCCL do when they are torn down is not what is judged here.
    atexit.register(_leave)
    return found


def prepare(context: Context, index: int, cluster: Sequence[str]) -> None:
    """Set up this process, before TensorFlow is imported: its own GPU, and what NCCL and gRPC go by."""
    environ = os.environ
    # By this variable and no resolver of one's own, as users do: with a SimpleClusterResolver that is not
    # told of accelerators the strategy computes on the CPU, and says nothing.
    task = {"type": "worker", "index": index}
    environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": list(cluster)}, "task": task})
    for name in [name for name in environ if name.lower().endswith("_proxy")]:
        del environ[name]  # gRPC would take a proxy to the other worker
    nccl_speaks(environ)
    # Two hosts to NCCL: without it, it takes both for processes of one, whose memory they cannot share.
    environ.setdefault("NCCL_HOSTID", f"tfenv-worker-{index}")
    if not context.on_cpu:
        environ["CUDA_VISIBLE_DEVICES"] = own_gpu(context.gpu.visible, context.gpu.count, index)


def own_gpu(visible: str | None, count: int, index: int) -> str:
    """CUDA_VISIBLE_DEVICES for a worker: one of the GPUs that are seen.

    Args:
        visible: what the variable is; None if it is not set. count: how many GPUs are seen.
    """
    names = [name.strip() for name in (visible or "").split(",") if name.strip()][:count]
    names = names or [str(number) for number in range(count)]
    return names[index % len(names)]


def _strategy(tf: Any, implementation: str) -> Any:
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(implementation=getattr(kinds, implementation))
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _placed(tf: Any, strategy: Any) -> str:
    """The device of what a replica computes."""

    def product() -> Any:
        square = tf.random.uniform((8, 8))  # a constant would be folded on the CPU
        return tf.linalg.matmul(square, square)

    (result,) = strategy.experimental_local_results(tf.function(lambda: strategy.run(product))())
    return str(result.device)


def _cpu(device: str) -> str:
    return device.rsplit("/device:", 1)[0] + "/device:CPU:0"


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
