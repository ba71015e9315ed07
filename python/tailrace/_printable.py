"""Text from files (names, attributes, units) as terminals and pages may show it.

A name in a file may hold any bytes. Whatever of it the package shows passes through here, by the
rule of trz/src/trz/base/printable.hpp; what it returns (paths, attributes, documents of JSON) stays
as the file has it.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

#: Control characters, line separators, marks of direction; surrogates stand for bytes not UTF-8.
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
    r"""One line in which every character is visible where it stands.

    >>> print(printable("a\x1b[2J\nb\u202e\udcff"))
    a\x1b[2J\nb\u202e\xff
    """
    return _ESCAPED.sub(_escape, str(text))


def html_text(text: Any) -> str:
    """The same, escaped for a page.

    >>> html_text('<b>&"')
    '&lt;b&gt;&amp;&quot;'
    """
    return escape(printable(text))
