"""The errors of the package. Every message names the argument or file, the value and what was expected."""

from __future__ import annotations


class Error(Exception):
    """Root of every error raised on purpose.

    >>> import esscher as es
    >>> try:
    ...     es.Rademacher(0)
    ... except es.Error as error:
    ...     print(error)
    rademacher: dim is 0, expected an integer >= 1
    """


class ArgumentError(Error, ValueError):
    """An argument has a value outside what the function accepts.

    >>> import esscher as es
    >>> es.universal(0, 1.0)
    Traceback (most recent call last):
    ...
    esscher.errors.ArgumentError: universal: L is 0, expected an integer >= 1
    """


class DimensionError(ArgumentError):
    """Shapes that must agree do not.

    >>> import esscher as es
    >>> es.Rademacher(2).log_mgf([1.0])
    Traceback (most recent call last):
    ...
    esscher.errors.DimensionError: rademacher: a has dimension 1, expected 2
    """


class DomainError(ArgumentError):
    """A point outside the domain, e.g. the log-MGF of Laplace at ``|a| >= 1/b``.

    >>> import esscher as es
    >>> es.Laplace(1).log_mgf([2.0])
    Traceback (most recent call last):
    ...
    esscher.errors.DomainError: laplace: a[0] is 2, expected |a| < 1/b = 1 (the log-MGF is infinite outside)
    """


class CapabilityError(Error):
    """No closed form or engine for this object; the message names one that serves.

    >>> import esscher as es
    >>> es.mean_square_error(es.Sphere(1), es.Attention(U=[[1.0]]), [1.0], 10, metric="grad_u", engine="exact")
    Traceback (most recent call last):
    ...
    esscher.errors.CapabilityError: ...direct...
    """


class FileError(Error, OSError):
    """A file that cannot be read, is malformed, or cannot be written.

    >>> import esscher as es
    >>> es.Run("no/such/run")
    Traceback (most recent call last):
    ...
    esscher.errors.FileError: ...no/such/run...
    """


class ConfigError(Error, ValueError):
    """A configuration key that is unknown, missing or wrong.

    >>> import esscher as es
    >>> es.preset("nobody")
    Traceback (most recent call last):
    ...
    esscher.errors.ConfigError: preset is 'nobody', expected one of: ...
    """


class RuntimeFailure(Error, RuntimeError):
    """A computation that started well and failed, or was interrupted.

    >>> import esscher as es
    >>> issubclass(es.RuntimeFailure, RuntimeError)
    True
    """
