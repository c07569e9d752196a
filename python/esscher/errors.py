"""The errors of the package. Every message names the argument or file, the value and what was expected."""

from __future__ import annotations


class Error(Exception):
    """Root of every error raised on purpose."""


class ArgumentError(Error, ValueError):
    """An argument has a value outside what the function accepts."""


class DimensionError(ArgumentError):
    """Shapes that must agree do not."""


class DomainError(ArgumentError):
    """A point outside the domain, e.g. the log-MGF of Laplace at ``|a| >= 1/b``."""


class CapabilityError(Error):
    """No closed form or engine for this object; the message names one that serves."""


class FileError(Error, OSError):
    """A file that cannot be read, is malformed, or cannot be written."""


class ConfigError(Error, ValueError):
    """A configuration key that is unknown, missing or wrong."""


class RuntimeFailure(Error, RuntimeError):
    """A computation that started well and failed, or was interrupted."""
