"""A training step on one or several GPUs, of any model here, precision and all-reduce; with XLA or not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator

from .devices import Devices
from .models import MODELS
from .plan import Config

_RATE, _MOMENTUM = 1e-4, 0.9
_LOSS_SCALE = 256.0  # constant: what is measured is the arithmetic, not the search for a scale

_COMPUTE = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class Training:
    """The model and its data, placed on the devices; ``step()`` starts one step, ``wait()`` ends all."""

    def __init__(self, tf: Any, config: Config, devices: Devices) -> None:
        self._tf, self._config = tf, config
        tf.config.experimental.enable_tensor_float_32_execution(config.precision != "float32")
        self._strategy = _strategy(tf, config, devices)
        names = devices.names[: config.gpus]
        with _placed(tf, self._strategy, names):
            self.model = MODELS[config.model](tf, tiny=not devices.is_gpu)
            self._variables = self.model.variables
            self._momenta = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self._variables]
        compute = _COMPUTE.get(config.precision, "float32")

        def data(context: Any) -> Any:
            with tf.device(names[context.replica_id_in_sync_group]):
                return tuple(tf.identity(part) for part in self.model.inputs(config.batch, compute))

        if config.gpus == 1:
            with tf.device(names[0]):
                self._data: Any = self.model.inputs(config.batch, compute)
        else:
            self._data = self._strategy.experimental_distribute_values_from_function(data)
        self._step = self._build()
        self._loss: Any = None

    @property
    def items(self) -> int:
        """Images or tokens of one step on all GPUs."""
        return int(self.model.items(self._config.batch) * self._config.gpus)

    def step(self) -> None:
        """Start one step."""
        self._loss = self._step(self._data)

    def wait(self) -> float:
        """Wait until all devices have done all; the loss of the last step."""
        results = self._strategy.experimental_local_results
        for variable in results(self._variables[-1]):
            variable.numpy()
        losses = [float(one.numpy()) for one in results(self._loss)]
        return sum(losses) / len(losses)

    def _build(self) -> Any:
        tf, strategy, config = self._tf, self._strategy, self._config
        scale = _LOSS_SCALE if config.precision == "mixed_float16" else 1.0

        def gradients(inputs: Any, targets: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self.model.loss(inputs, targets)
                scaled = loss * (scale / config.gpus)
            found = tape.gradient(scaled, self._variables)
            return loss, [_usable(tf, gradient, scale) for gradient in found]

        def update(distribution: Any, found: Any) -> None:
            extended = distribution.extended
            if config.gpus > 1:
                found = extended.batch_reduce_to(
                    tf.distribute.ReduceOp.SUM, [(found[n], v) for n, v in enumerate(self._variables)]
                )
            for n, variable in enumerate(self._variables):
                extended.update(variable, _descend, args=(found[n], self._momenta[n]))

        # On several GPUs the sum cannot be inside what XLA compiles: only the gradients are.
        inner = _compiled(tf, gradients) if config.xla and config.gpus > 1 else gradients

        def replica(inputs: Any, targets: Any) -> Any:
            loss, found = inner(inputs, targets)
            tf.distribute.get_replica_context().merge_call(update, args=(found,))
            return loss

        if config.gpus == 1:

            def one(data: Any) -> Any:
                with tf.GradientTape() as tape:
                    loss = self.model.loss(*data)
                    scaled = loss * scale
                found = tape.gradient(scaled, self._variables)
                for n, variable in enumerate(self._variables):
                    _descend(variable, _usable(tf, found[n], scale), self._momenta[n])
                return loss

            return _compiled(tf, one) if config.xla else tf.function(one)
        return tf.function(lambda data: strategy.run(replica, args=data))


def _usable(tf: Any, gradient: Any, scale: float) -> Any:
    """Without the scale, and without what float16 cannot hold, at the price that Keras pays for it."""
    if scale == 1.0:
        return gradient
    return tf.where(tf.math.is_finite(gradient), gradient / scale, tf.zeros_like(gradient))


def _descend(variable: Any, gradient: Any, momentum: Any) -> None:
    variable.assign_sub(_RATE * momentum.assign(_MOMENTUM * momentum + gradient))


def _compiled(tf: Any, function: Callable[..., Any]) -> Any:
    try:
        return tf.function(function, jit_compile=True)
    except TypeError:  # TensorFlow 2.4
        return tf.function(function, experimental_compile=True)


def _strategy(tf: Any, config: Config, devices: Devices) -> Any:
    if config.gpus == 1:
        return tf.distribute.get_strategy()
    sums = {
        "nccl": tf.distribute.NcclAllReduce,
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
        "reduction_to_one_device": tf.distribute.ReductionToOneDevice,
    }
    names = list(devices.names[: config.gpus])
    return tf.distribute.MirroredStrategy(names, cross_device_ops=sums[config.reduction]())


@contextmanager
def _placed(tf: Any, strategy: Any, names: tuple[str, ...]) -> Iterator[None]:
    if len(names) > 1:
        with strategy.scope():
            yield
    else:
        with tf.device(names[0]):
            yield
