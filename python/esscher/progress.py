"""How far a long call is: a callback of yours, or a bar in terminals and notebooks."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Optional, Union

Callback = Callable[[int, int], Any]
Progress = Union[None, bool, Callback]

_DELAY = 1.0  # seconds without a bar, so that short calls stay silent
_default: Progress = None


def set_progress(progress: Progress) -> None:
    """What calls without ``progress`` do: True shows a bar, False nothing, a function f(done, total) is called.

    None, the start, shows a bar in terminals and notebooks after a second.

    >>> import esscher as es
    >>> es.set_progress(False)
    >>> es.set_progress(None)
    """
    global _default
    _default = progress


def _notebook() -> bool:
    return "ipykernel" in sys.modules


class Bar:
    """A bar on one line: share, numbers, time left. It appears after a second and is gone at the end."""

    def __init__(self, label: str) -> None:
        self.label, self.start, self.shown, self.width = label, time.monotonic(), 0.0, 0
        self.handle: Any = None

    def text(self, done: int, total: int) -> str:
        """The line."""
        spent = time.monotonic() - self.start
        share = min(done / total, 1.0) if total else 0.0
        left = f", {spent * (1 - share) / share:.0f} s left" if share > 0.01 else ""
        return f"{self.label} [{'#' * int(24 * share):<24}] {100 * share:3.0f} % ({done} of {total}{left})"

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.start < _DELAY or now - self.shown < 0.1:
            return
        self.shown = now
        self.write(self.text(done, total))

    def write(self, text: str) -> None:
        """Over the line that is there."""
        if _notebook():
            from IPython.display import display  # type: ignore[import]

            bundle = {"text/plain": text}
            if self.handle is None:
                self.handle = display(bundle, raw=True, display_id=True)
            else:
                self.handle.update(bundle, raw=True)
            return
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def close(self) -> None:
        """Removes the line."""
        if self.shown and _notebook():
            self.handle.update({"text/plain": ""}, raw=True)
        elif self.shown:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


def listener(progress: Progress, label: str) -> Optional[Callback]:
    """The function that a call tells its progress to, or None."""
    if progress is None:
        progress = _default
    if progress is None:
        progress = _notebook() or bool(getattr(sys.stderr, "isatty", lambda: False)())
    if progress is True:
        return Bar(label)
    return progress if callable(progress) else None
