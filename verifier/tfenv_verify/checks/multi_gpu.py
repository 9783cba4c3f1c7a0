"""A training step over all GPUs gives the same weights on each."""

from __future__ import annotations

from typing import Any

from ..context import Context
from ..protocol import ONE_GPU, NotRunError, Report
from ._numeric import flat, grow_memory


def check(context: Context, report: Report) -> None:
    """A MirroredStrategy step over all GPUs gives the right weights on each of them."""
    if context.gpu.count < 2:
        raise NotRunError(ONE_GPU)
    import tensorflow as tf

    grow_memory(tf)
    count = len(tf.config.list_physical_devices("GPU"))
    if count < 2:
        report.error(f"the driver sees {context.gpu.count} GPUs, TensorFlow sees {count}")
        return
    # Not NCCL, the default: the NCCL linked into TensorFlow 2.15 has no code for compute
    # capability 9.0, and an all-reduce with it does not end there.
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())
    report.facts["replicas"] = strategy.num_replicas_in_sync
    judge(count, strategy.num_replicas_in_sync, step(tf, strategy), report)


def step(tf: Any, strategy: Any) -> list[list[float]]:
    """The weights of each replica after w -= all_reduce_sum(gradient of sum(w * (replica + 1)))."""
    with strategy.scope():
        weights = tf.Variable(tf.zeros((4,)), aggregation=tf.VariableAggregation.MEAN)

    def train() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            factor = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(weights * factor)
            gradient = tape.gradient(loss, weights)
            weights.assign_sub(context.all_reduce("SUM", gradient))
            return tf.identity(weights)

        return strategy.run(replica)

    return [flat(value) for value in strategy.experimental_local_results(tf.function(train)())]


def judge(gpus: int, replicas: int, weights: list[list[float]], report: Report) -> None:
    """The sum 1 + 2 + ... over the replicas, exactly, on every replica."""
    expected = -float(sum(range(1, replicas + 1)))
    if replicas != gpus:
        report.error(f"{gpus} GPUs, but {replicas} replicas")
    if len(weights) != replicas or any(value != expected for w in weights for value in w):
        report.error(
            f"after one step the weights are {weights}, not {expected} on each of {replicas} GPUs",
            remedy="look at nvidia-smi topo -m and at the host's PCIe ACS and IOMMU settings",
        )
