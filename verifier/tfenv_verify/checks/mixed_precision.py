"""Mixed precision: the policies, the scaled loss, results near float32's, and whether it is faster."""

from __future__ import annotations

import functools
import re
import time
from typing import Any, Callable

from ..context import Context
from ..devices import Devices, capability, take
from ..protocol import Report, say
from ._numeric import distance, flat, some

# Policy, what it computes in, and the first compute capability with units for it.
POLICIES = (("mixed_float16", "float16", (7, 0)), ("mixed_bfloat16", "bfloat16", (8, 0)))
STEPS = 20
NEAR = 0.02  # of the loss of the first step
_SLOWER = 0.95  # the same speed, as far as one can measure it
_SECONDS = 0.5  # for each measurement
_TIMES = 16  # in one call, one after the other: a fast GPU does a single product before Python asks for more


def check(context: Context, report: Report) -> None:
    """mixed_float16 and mixed_bfloat16 train as float32 does; skipped steps; the speed-up."""
    import tensorflow as tf

    device = take(tf, context)
    # As users write it, without naming a device: Keras has variables that belong on the CPU.
    plain = train(tf, "float32")
    report.facts["loss"] = {"float32": [plain["losses"][0], plain["losses"][-1]]}
    for policy, dtype, _since in POLICIES:
        say(f"mixed_precision: {policy}")
        mixed = train(tf, policy)
        report.facts["loss"][policy] = [mixed["losses"][0], mixed["losses"][-1]]
        judge(policy, dtype, mixed, report)
        near(policy, plain["losses"], mixed["losses"], report)
    say("mixed_precision: loss scale")
    scaled = skip(tf)
    report.facts["loss_scale"] = scaled
    judge_skip(scaled, report)
    tf.keras.mixed_precision.set_global_policy("float32")
    say("mixed_precision: speed")
    with tf.device(device.names[0]):
        speeds = measure(tf, device)
    report.facts["per_second"] = speeds
    judge_speed(speeds, capability(context), report)


def train(tf: Any, policy: str) -> dict[str, Any]:
    """Some steps of a small model from the same weights: its dtypes, and the loss of each step."""
    keras = tf.keras
    keras.mixed_precision.set_global_policy(policy)
    layers = [
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, dtype="float32"),
    ]
    model = keras.Sequential(layers)
    inputs = some(tf, 64, 16, low=-0.5)
    targets = tf.reduce_sum(inputs, axis=1, keepdims=True)
    model(inputs)
    model.set_weights([some(tf, *weight.shape, low=-0.5).numpy() * 0.5 for weight in model.get_weights()])
    optimizer: Any = keras.optimizers.SGD(0.2)
    if policy == "mixed_float16":
        optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)
    # Keras 3 compiles with XLA on its own where it can; that is the check xla's.
    options: dict[str, Any] = {"jit_compile": False} if _keras(tf) >= "3" else {}
    model.compile(optimizer=optimizer, loss="mse", **options)
    first = model.layers[0]
    computed = str(first(inputs).dtype)
    before = flat(tf.convert_to_tensor(first.kernel))
    losses = [float(model.train_on_batch(inputs, targets)) for _ in range(STEPS)]
    after = flat(tf.convert_to_tensor(first.kernel))
    return {
        "computes": computed,
        "compute_dtype": str(first.compute_dtype),
        "weights": str(tf.convert_to_tensor(first.kernel).dtype),
        "losses": losses,
        "change": distance(after, before),
    }


def _keras(tf: Any) -> str:
    return str(getattr(tf.keras, "__version__", "2"))  # Keras 2 within TensorFlow tells none


def judge(policy: str, dtype: str, found: dict[str, Any], report: Report) -> None:
    """Computes in its dtype, keeps float32 weights, and moves them a finite distance."""
    remedy = "look for a set_global_policy and a keras.json elsewhere in this image"
    for what in (found["computes"], found["compute_dtype"]):
        if not re.search(rf"\b{dtype}\b", what):  # float16 is no bfloat16
            report.error(f"a layer under {policy} computes in {what}", remedy=remedy)
            break
    if "float32" not in found["weights"]:
        report.error(f"the weights under {policy} are {found['weights']}", remedy=remedy)
    wrong = [loss for loss in found["losses"] if not abs(loss) < float("inf")]
    if wrong:
        report.error(
            f"under {policy} the loss of a step is {wrong[0]}",
            str(found["losses"]),
            "the GPU's kernels for this dtype compute wrongly: the checks gpu_kernels and cudnn say which",
        )
    if not 0.0 < found["change"] < float("inf"):
        report.error(
            f"under {policy} the steps moved the weights by {found['change']}",
            str(found["losses"]),
            "every step was skipped: the gradients are not finite, or the loss scale is far too large",
        )


def near(policy: str, plain: list[float], mixed: list[float], report: Report) -> None:
    """The loss falls as it does in float32, and ends near to it."""
    apart = abs(mixed[-1] - plain[-1])
    if not (apart <= NEAR * abs(plain[0]) and mixed[-1] < mixed[0]):
        report.error(
            f"after {len(mixed)} steps the loss under {policy} is {mixed[-1]:.4g}, in float32 "
            f"{plain[-1]:.4g}",
            f"it began at {mixed[0]:.4g} and {plain[0]:.4g}",
            "the result should differ by rounding only: the checks gpu_kernels and cudnn say what is off",
        )


def skip(tf: Any) -> dict[str, float]:
    """Give LossScaleOptimizer an infinite gradient, and a finite one after it.

    ``variable_*`` is the variable, which starts at 1, and ``scale_*`` the loss scale: at the start, after
    the infinite gradient, and after the finite one.
    """
    keras = tf.keras
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.5))
    variable = tf.Variable([1.0]) if _keras(tf) < "3" else keras.Variable([1.0])
    if hasattr(optimizer, "build"):
        optimizer.build([variable])
    found = {"variable_start": 1.0, "scale_start": _scale(optimizer)}
    optimizer.apply_gradients([(tf.constant([float("inf")]), variable)])
    found["variable_inf"] = flat(tf.convert_to_tensor(variable))[0]
    found["scale_inf"] = _scale(optimizer)
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])
    found["variable_finite"] = flat(tf.convert_to_tensor(variable))[0]
    found["scale_finite"] = _scale(optimizer)
    return found


def _scale(optimizer: Any) -> float:
    told = getattr(optimizer, "dynamic_scale", None)
    if told is None or isinstance(told, bool):
        told = optimizer.loss_scale
    return float(told() if callable(told) else told)


def judge_skip(found: dict[str, float], report: Report) -> None:
    """The infinite step changes nothing and halves the scale; the finite one changes the variable."""
    remedy = "training in mixed_float16 breaks at the first overflow here: compare Keras with the lock"
    evidence = ", ".join(f"{name} {value:g}" for name, value in found.items())
    if found["variable_inf"] != found["variable_start"]:
        report.error("a step with an infinite gradient was not skipped", evidence, remedy)
    if found["scale_inf"] * 2.0 != found["scale_start"]:
        report.error("the loss scale did not halve after an infinite gradient", evidence, remedy)
    if found["variable_finite"] in (found["variable_inf"], found["variable_start"]) or not abs(
        found["variable_finite"]
    ) < float("inf"):
        report.error("no finite step was made after the skipped one", evidence, remedy)


def measure(tf: Any, device: Devices) -> dict[str, dict[str, float]]:
    """Matrix products and blocks of convolutions per second, fed from the device's memory."""
    side, images, times = (4096, 64, _TIMES) if device.is_gpu else (64, 1, 2)
    speeds: dict[str, dict[str, float]] = {}
    for dtype in ("float32", *(dtype for _policy, dtype, _since in POLICIES)):
        if not device.is_gpu and dtype != "float32":
            continue  # a CPU takes minutes for them
        # A product with it keeps the size of the numbers, so that a chain of them stays within float16.
        left = tf.cast(tf.random.stateless_uniform((side, side), (1, 2), -1, 1) * (3.0 / side) ** 0.5, dtype)
        image = tf.cast(tf.random.stateless_uniform((images, 56, 56, 64), (1, 2)), dtype)
        kernel = tf.cast(tf.random.stateless_uniform((3, 3, 64, 64), (3, 4), -0.05, 0.05), dtype)
        speeds[dtype] = {
            "matrix product": times * rate(tf, chain(tf.linalg.matmul, times), left, left),
            "convolution block": times * rate(tf, chain(functools.partial(block, tf), times), image, kernel),
        }
    return speeds


def chain(compute: Callable[[Any, Any], Any], times: int) -> Callable[[Any, Any], Any]:
    """``compute(x, given)`` so many times, each on what the one before gave."""

    def chained(x: Any, given: Any) -> Any:
        for _ in range(times):
            x = compute(x, given)
        return x

    return chained


def block(tf: Any, x: Any, kernel: Any) -> Any:
    """Two convolutions with what is around them in a residual network."""
    inner = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"))
    return tf.nn.relu(tf.nn.conv2d(inner, kernel, strides=1, padding="SAME") + x)


def rate(tf: Any, compute: Callable[..., Any], *given: Any) -> float:
    """Calls per second: the best of three, once the kernels are there."""
    function = functools.partial(tf.function(compute), *given)
    _wait(tf, function())
    once = time.monotonic()
    _wait(tf, function())
    number = max(1, min(200, int(_SECONDS / max(1e-4, time.monotonic() - once))))
    best = float("inf")
    for _ in range(3):
        began = time.monotonic()
        for _ in range(number):
            result = function()
        _wait(tf, result)
        best = min(best, (time.monotonic() - began) / number)
    return round(1.0 / best, 2)


def _wait(tf: Any, result: Any) -> None:
    # A copy to the host comes after all that the GPU was given before.
    tf.reshape(result, (-1,))[:1].numpy()


def judge_speed(speeds: dict[str, dict[str, float]], gpu: tuple[int, ...], report: Report) -> None:
    """The speed-up over float32 by the GPU's generation: none is expected before there are units for it."""
    for policy, dtype, since in POLICIES:
        for what, speed in speeds.get(dtype, {}).items():
            ratio = speed / speeds["float32"][what]
            told = f"{policy}: a {what} is {ratio:.2f} times as fast as in float32"
            generation = ".".join(map(str, gpu))
            if not gpu or gpu < since:
                report.info(
                    told,
                    f"none is expected on compute capability {generation}" if gpu else "the GPU is not known",
                )
            elif ratio < _SLOWER:
                report.warning(
                    told,
                    f"compute capability {generation} has units for {dtype}",
                    "measure your own model before you use it, and with jit_compile=True: `tfenv bench`",
                )
            else:
                report.info(told)
