"""The project's errors: each says what is wrong, what to type next, and the exit code it means."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNVERIFIED = 3
EXIT_NOT_READY = 4


class TfenvError(Exception):
    """An error a user can act on.

    Args:
        message: what is wrong, one or a few lines, without a trailing remedy.
        remedy: what to do or type next; printed after the message.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(TfenvError):
    """The request itself is wrong: an unknown cell, a bad option, an invalid matrix.yaml."""

    exit_code = EXIT_USAGE


class MatrixError(UsageError):
    """matrix.yaml is not what the schema expects; the message holds file, line and column."""


class NotReadyError(TfenvError):
    """The host or its engine cannot do this now: no engine, no permission, no disk, no network."""

    exit_code = EXIT_NOT_READY


class IntegrityError(TfenvError):
    """An input is not the one that was locked: a hash or a size differs."""


class DriftError(TfenvError):
    """Generated files differ from what the matrix and the lock give."""
