"""What is trained: ResNet-50 and a transformer, in TensorFlow's own operations.

Not Keras layers: the same graph from TensorFlow 2.4 to the newest, whichever Keras comes with it, so
that the figures of two rows compare the libraries and the compiler. Variables are float32 and are cast to the
precision of the input where they are used, as Keras's mixed precision does; normalisation keeps
float32 statistics. Moving averages, which take no time, are left out.
"""

from __future__ import annotations

import math
from typing import Any


class _Weights:
    """Makes the variables, in order; the same ones each time."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self.all: list[Any] = []

    def normal(self, *shape: int) -> Any:
        fan_in = 1
        for side in shape[:-1]:
            fan_in *= side
        seed = (len(self.all), 7)
        start = self._tf.random.stateless_normal(shape, seed) * math.sqrt(2.0 / fan_in)
        return self._add(start)

    def constant(self, value: float, *shape: int) -> Any:
        return self._add(self._tf.fill(shape, value))

    def _add(self, start: Any) -> Any:
        self.all.append(self._tf.Variable(start, trainable=True))
        return self.all[-1]


class ResNet50:
    """ResNet-50 v1.5: the stride of a block is in its 3x3 convolution."""

    unit = "images/s"

    def __init__(self, tf: Any, tiny: bool = False) -> None:
        self._tf, make = tf, _Weights(tf)
        width, depths, self.image, self.classes = (
            (8, (1, 1, 1, 1), 32, 10) if tiny else (64, (3, 4, 6, 3), 224, 1000)
        )
        self._stem = self._unit(make, 7, 3, width)
        self._blocks = []
        channels = width
        for stage, depth in enumerate(depths):
            inner = width * 2**stage
            for place in range(depth):
                stride = 2 if stage and not place else 1
                convolutions = [
                    self._unit(make, 1, channels, inner),
                    self._unit(make, 3, inner, inner),
                    self._unit(make, 1, inner, inner * 4),
                ]
                shortcut = None if place else self._unit(make, 1, channels, inner * 4)
                self._blocks.append((stride, convolutions, shortcut))
                channels = inner * 4
        self._dense, self._bias = make.normal(channels, self.classes), make.constant(0.0, self.classes)
        self.variables = make.all

    def inputs(self, batch: int, precision: str) -> tuple[Any, Any]:
        """Images and labels; made where the caller's ``tf.device`` says."""
        tf = self._tf
        images = tf.random.stateless_uniform((batch, self.image, self.image, 3), (1, 2))
        # int64: TensorFlow keeps int32 on the CPU, even where a GPU is asked for.
        labels = tf.random.stateless_uniform((batch,), (3, 4), 0, self.classes, tf.int64)
        return tf.cast(images, precision), labels

    def items(self, batch: int) -> int:
        """Images in a batch."""
        return batch

    def loss(self, images: Any, labels: Any) -> Any:
        """Cross entropy, float32."""
        tf = self._tf
        hidden = tf.nn.relu(self._apply(images, self._stem, 2))
        hidden = tf.nn.max_pool2d(hidden, 3, 2, "SAME")
        for stride, (first, second, third), shortcut in self._blocks:
            inner = tf.nn.relu(self._apply(hidden, first, 1))
            inner = tf.nn.relu(self._apply(inner, second, stride))
            inner = self._apply(inner, third, 1)
            hidden = tf.nn.relu(
                inner + (hidden if shortcut is None else self._apply(hidden, shortcut, stride))
            )
        pooled = tf.reduce_mean(hidden, (1, 2))
        logits = tf.matmul(pooled, tf.cast(self._dense, pooled.dtype)) + tf.cast(self._bias, pooled.dtype)
        logits = tf.cast(logits, tf.float32)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    def _unit(self, make: _Weights, side: int, inputs: int, outputs: int) -> tuple[Any, Any, Any]:
        return (
            make.normal(side, side, inputs, outputs),
            make.constant(1.0, outputs),
            make.constant(0.0, outputs),
        )

    def _apply(self, images: Any, unit: tuple[Any, Any, Any], stride: int) -> Any:
        tf = self._tf
        kernel, scale, offset = unit
        images = tf.nn.conv2d(images, tf.cast(kernel, images.dtype), stride, "SAME")
        scale, offset = tf.convert_to_tensor(scale), tf.convert_to_tensor(offset)
        return tf.compat.v1.nn.fused_batch_norm(images, scale, offset, epsilon=1e-4, is_training=True)[0]


class Transformer:
    """Four encoder blocks, normalised first, with full attention."""

    unit = "tokens/s"

    def __init__(self, tf: Any, tiny: bool = False) -> None:
        self._tf, make = tf, _Weights(tf)
        self.width, self._heads, self.length, depth = (32, 4, 16, 1) if tiny else (1024, 16, 512, 4)
        wide = 4 * self.width
        self._blocks = [
            {
                "norm1": (make.constant(1.0, self.width), make.constant(0.0, self.width)),
                "qkv": make.normal(self.width, 3 * self.width),
                "out": make.normal(self.width, self.width),
                "norm2": (make.constant(1.0, self.width), make.constant(0.0, self.width)),
                "up": make.normal(self.width, wide),
                "down": make.normal(wide, self.width),
            }
            for _ in range(depth)
        ]
        self.variables = make.all

    def inputs(self, batch: int, precision: str) -> tuple[Any, Any]:
        """Embedded tokens, and what should become of them."""
        tf = self._tf
        made = [tf.random.stateless_normal((batch, self.length, self.width), (n, 5)) for n in (1, 2)]
        return tf.cast(made[0], precision), tf.cast(made[1], precision)

    def items(self, batch: int) -> int:
        """Tokens in a batch."""
        return batch * self.length

    def loss(self, tokens: Any, targets: Any) -> Any:
        """Mean square of the error, float32."""
        tf = self._tf
        for block in self._blocks:
            tokens = tokens + self._attend(self._normal(tokens, block["norm1"]), block)
            inner = tf.nn.gelu(self._times(self._normal(tokens, block["norm2"]), block["up"]))
            tokens = tokens + self._times(inner, block["down"])
        return tf.reduce_mean(
            tf.math.squared_difference(tf.cast(tokens, tf.float32), tf.cast(targets, tf.float32))
        )

    def _times(self, tokens: Any, weights: Any) -> Any:
        tf = self._tf
        weights = tf.cast(weights, tokens.dtype)
        flat = tf.matmul(tf.reshape(tokens, (-1, tokens.shape[-1])), weights)
        return tf.reshape(flat, (-1, self.length, weights.shape[-1]))

    def _normal(self, tokens: Any, norm: tuple[Any, Any]) -> Any:
        tf = self._tf
        wide = tf.cast(tokens, tf.float32)
        mean, variance = tf.nn.moments(wide, -1, keepdims=True)
        return tf.cast((wide - mean) * tf.math.rsqrt(variance + 1e-5) * norm[0] + norm[1], tokens.dtype)

    def _attend(self, tokens: Any, block: dict[str, Any]) -> Any:
        tf = self._tf
        size = self.width // self._heads
        parts = tf.split(self._times(tokens, block["qkv"]), 3, -1)
        shape = (-1, self.length, self._heads, size)
        query, key, value = (tf.transpose(tf.reshape(part, shape), (0, 2, 1, 3)) for part in parts)
        scores = tf.matmul(query, key, transpose_b=True) * (1.0 / math.sqrt(size))
        seen = tf.matmul(tf.nn.softmax(scores), value)
        joined = tf.reshape(tf.transpose(seen, (0, 2, 1, 3)), (-1, self.length, self.width))
        return self._times(joined, block["out"])


MODELS: dict[str, Any] = {"resnet50": ResNet50, "transformer": Transformer}
