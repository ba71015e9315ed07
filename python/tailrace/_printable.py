"""Escapes text from files (names, attributes, units) for terminals and pages.

A name in a file may hold any bytes. All texts that the package shows are escaped here, by the rule
of trz/src/trz/base/printable.hpp. Returned values (paths, attributes, JSON documents) are not
escaped.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from html import escape
from typing import Any

_PACKAGE = os.path.dirname(__file__)

#: Control characters, line separators and marks of direction; also surrogates, which represent
#: bytes that are not UTF-8.
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
                      "\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    elif code >= 0x80:
        return f"\\u{code:04x}"
    return _SHORT.get(found[0], f"\\x{code:02x}")


def printable(text: Any) -> str:
    r"""Return one line in which every character is visible in its place.

    >>> print(printable("a\x1b[2J\nb\u202e\udcff"))
    a\x1b[2J\nb\u202e\xff
    """
    return _ESCAPED.sub(_escape, str(text))


def html_text(text: Any) -> str:
    """Escape a text for a page, so that every character is visible.

    >>> html_text('<b>&"')
    '&lt;b&gt;&amp;&quot;'
    """
    return escape(printable(text))


def warn(text: Any, category: type[Warning] = RuntimeWarning) -> None:
    """Warn at the line outside this package that made the call."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(text), category, stacklevel=level)
