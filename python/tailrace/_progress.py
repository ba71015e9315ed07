"""Progress bars: one line in a terminal, one element in a notebook, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, Optional, Union

from ._printable import printable

ShowProgress = Callable[[int, int], None]
#: True: show a bar if output is visible; a function: called with the bytes done and all bytes;
#: None, False: no progress.
Progress = Union[bool, ShowProgress, None]

_WIDTH = 30
_EVERY_S = 0.1


def _notebook() -> Optional[Any]:
    """Return IPython's display function, if this runs in a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display
    return display


def bar_text(label: str, done: int, total: int) -> str:
    """
    >>> bar_text("reading u", 3 << 20, 4 << 20)
    'reading u [######################--------]  75 %  3.1 of 4.2 MB'
    """
    share = min(1.0, done / total) if total else 1.0
    filled = int(share * _WIDTH)
    return (f"{label} [{'#' * filled}{'-' * (_WIDTH - filled)}] {share:4.0%}".replace("%", " %")
            + f"  {done / 1e6:.1f} of {total / 1e6:.1f} MB")


class _Html:
    def __init__(self, text: str, share: float) -> None:
        self._text = text
        self._share = share

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        label, _, numbers = self._text.rpartition(" [")
        numbers = numbers.partition("] ")[2]
        return (f'<div>{escape(label)} <progress value="{self._share:.3f}" max="1"></progress> '
                f"{numbers}</div>")


@contextlib.contextmanager
def progress_bar(progress: Progress, label: str) -> Iterator[ShowProgress]:
    """Yield a function that reports progress; the bar is cleared when the work ends."""
    if callable(progress):
        yield progress
        return
    display = _notebook() if progress else None
    terminal = bool(progress) and display is None and sys.stderr.isatty()
    if not terminal and display is None:
        yield lambda done, total: None
        return
    label = printable(label)
    handle: Any = None
    last_s = 0.0

    def show_progress(done: int, total: int) -> None:
        nonlocal handle, last_s
        now_s = time.monotonic()
        if now_s - last_s < _EVERY_S and done < total:
            return
        last_s = now_s
        text = bar_text(label, done, total)
        if display is None:
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
            return
        shown = _Html(text, done / total if total else 1.0)
        if handle is None:
            handle = display(shown, display_id=True)
        else:
            handle.update(shown)

    try:
        yield show_progress
    finally:
        if terminal and last_s:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
