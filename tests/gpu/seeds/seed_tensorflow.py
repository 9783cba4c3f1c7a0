"""What TensorFlow computes is changed: each seed takes the module ``tensorflow`` and changes one function."""

from __future__ import annotations

import functools
import random
import sys
import time
from typing import Any, Callable

_FOREVER = 3600.0
Seed = Callable[[Any], None]


def _replace(owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Call ``change`` with the real function and its arguments instead of it."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def changed(*arguments: Any, **more: Any) -> Any:
        return change(real, *arguments, **more)

    setattr(owner, name, changed)


def convolution_off(tf: Any) -> None:
    """A convolution is off by one hundredth, but for the reference in float64."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        return found if found.dtype == tf.float64 else found * tf.cast(1.01, found.dtype)

    _replace(tf.nn, "conv2d", change)


def batch_norm_nan(tf: Any) -> None:
    """A batch norm gives NaN."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        return found._replace(y=found.y * tf.cast(float("nan"), found.y.dtype))

    _replace(tf.raw_ops, "FusedBatchNormV3", change)


def softmax_nan(tf: Any) -> None:
    """A softmax gives NaN on the device, which is asked twice before the CPU is."""
    calls: list[int] = []

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return real(*arguments, **more) * (float("nan") if len(calls) <= 2 else 1.0)

    _replace(tf.nn, "softmax", change)


def no_kernel(tf: Any) -> None:
    """An operation has no code for this GPU."""

    def change(_real: Any, *_arguments: Any, **_more: Any) -> Any:
        raise tf.errors.InternalError(None, None, "no kernel image is available for execution on the device")

    _replace(tf.math, "top_k", change)


def elsewhere(tf: Any) -> None:
    """A matrix product is computed on the CPU, whatever device is asked for."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        with tf.device("/CPU:0"):
            return real(*arguments, **more)

    _replace(tf.linalg, "matmul", change)


def sum_wrong(tf: Any) -> None:
    """A sum over the replicas is off by a thousandth, when it is reduced to one device."""

    def change(real: Any, self: Any, *arguments: Any, **more: Any) -> Any:
        found = real(self, *arguments, **more)
        return found * 1.001 if "ReductionToOneDevice" in " ".join(sys.argv) else found

    _replace(tf.distribute.ReplicaContext, "all_reduce", change)


def sum_hangs(tf: Any) -> None:
    """A sum over the replicas never ends, when it is copied in a hierarchy."""

    def change(real: Any, self: Any, *arguments: Any, **more: Any) -> Any:
        if "HierarchicalCopyAllReduce" in " ".join(sys.argv):
            time.sleep(_FOREVER)
        return real(self, *arguments, **more)

    _replace(tf.distribute.ReplicaContext, "all_reduce", change)


def replicas_differ(tf: Any) -> None:
    """Each replica has weights of its own."""

    def change(real: Any, value: Any, *arguments: Any, **more: Any) -> Any:
        found = real(value, *arguments, **more)
        if not isinstance(value, tf.Variable):
            return found
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return found + 0.5 * tf.cast(replica, found.dtype)

    _replace(tf, "identity", change)


def policy_ignored(tf: Any) -> None:
    """Keras goes on in float32 when it is told to compute in float16."""
    _replace(
        tf.keras.mixed_precision,
        "set_global_policy",
        lambda real, policy: None if policy == "mixed_float16" else real(policy),
    )


def loss_nan(tf: Any) -> None:
    """The loss of a step in bfloat16 is NaN."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        mixed = tf.keras.mixed_precision.global_policy().name == "mixed_bfloat16"
        return float("nan") if mixed else found

    _replace(tf.keras.Model, "train_on_batch", change)


def infinite_step_made(tf: Any) -> None:
    """A step with an infinite gradient is made as if it were finite."""
    precision = tf.keras.mixed_precision

    def finite(real: Any, pairs: Any, *arguments: Any, **more: Any) -> Any:
        given = [
            (tf.where(tf.math.is_inf(gradient), tf.ones_like(gradient), gradient), variable)
            for gradient, variable in pairs
        ]
        return real(given, *arguments, **more)

    class Optimizer:
        """In the optimizer's place, since Keras 2 makes it of one of two classes."""

        def __new__(cls, *arguments: Any, **more: Any) -> Any:
            made = real(*arguments, **more)
            object.__setattr__(made, "apply_gradients", functools.partial(finite, made.apply_gradients))
            return made

    real = precision.LossScaleOptimizer
    precision.LossScaleOptimizer = Optimizer


def xla_wrong(tf: Any) -> None:
    """A sine in a compiled function is off by a half."""
    _replace(
        tf.math, "sin", lambda real, x, **more: real(x, **more) * (1.0 if tf.executing_eagerly() else 1.5)
    )


def xla_hangs(tf: Any) -> None:
    """A function that XLA compiles never comes back."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        if not tf.executing_eagerly():
            time.sleep(_FOREVER)
        return real(*arguments, **more)

    _replace(tf.math, "sin", change)


def graph_wrong(tf: Any) -> None:
    """A hyperbolic tangent in a graph is off by a hundredth."""
    _replace(tf, "tanh", lambda real, x, **more: real(x, **more) * (1.0 if tf.executing_eagerly() else 1.01))


def random_dropout(tf: Any) -> None:
    """A dropout takes no notice of the seed."""
    chance = random.SystemRandom()
    _replace(
        tf.nn, "dropout", lambda real, *given, **more: real(*given, **more) * (1.0 + chance.random() / 100)
    )


def no_limit(tf: Any) -> None:
    """A limit of memory is not passed on."""
    tf.config.set_logical_device_configuration = lambda *_arguments: None


def no_profile(tf: Any) -> None:
    """The profiler records nothing."""
    for name in ("start", "stop"):
        setattr(tf.profiler.experimental, name, lambda *_arguments, **_more: None)


def loaded_otherwise(tf: Any) -> None:
    """What was saved comes back with other weights."""

    def change(real: Any, *arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        found.weights.assign(found.weights * 1.1)
        return found

    _replace(tf.saved_model, "load", change)


def starved(tf: Any) -> None:
    """A batch that was not on the device before takes long to get there."""
    real = tf.function

    def function(*arguments: Any, **more: Any) -> Any:
        made = real(*arguments, **more)
        first: list[Any] = []

        def call(*given: Any) -> Any:
            first[:] = first or given
            if given and given[0] is not first[0]:
                time.sleep(1.0)
            return made(*given)

        return call

    tf.function = function


def without_cuda(tf: Any) -> None:
    """TensorFlow says that it was built for the CPU alone."""
    tf.test.is_built_with_cuda = lambda: False
    tf.sysconfig.get_build_info = lambda: {"is_cuda_build": False}


def no_numbers(tf: Any) -> None:
    """A matrix product gives NaN."""
    _replace(tf.linalg, "matmul", lambda real, *given, **more: real(*given, **more) * float("nan"))


SEEDS: dict[str, Seed] = {
    seed.__name__: seed
    for seed in (
        convolution_off,
        batch_norm_nan,
        softmax_nan,
        no_kernel,
        elsewhere,
        sum_wrong,
        sum_hangs,
        replicas_differ,
        policy_ignored,
        loss_nan,
        infinite_step_made,
        xla_wrong,
        xla_hangs,
        graph_wrong,
        random_dropout,
        no_limit,
        no_profile,
        loaded_otherwise,
        starved,
        without_cuda,
        no_numbers,
    )
}
