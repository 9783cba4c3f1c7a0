"""tfenv: TensorFlow GPU environments in containers that can be trusted, pinned and rebuilt."""

__version__ = "0.1.0"
