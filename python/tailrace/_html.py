"""HTML for notebooks: shows names, shapes and sizes of files, groups and variables, never values.

All texts from a file pass through html_text(). Sizes come from the chunk index, which is read once
per open file and only when needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._measures import bytes_text, ratio_text, shape_text
from ._printable import html_text

if TYPE_CHECKING:
    from ._group import Group
    from ._variable import Variable

#: Further rows are counted, not shown.
_ROWS_MAX = 200
_VALUE_MAX = 200


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a table; cells are plain texts, escaped here."""
    body = "".join(f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}</tr>"
                   for row in rows)
    names = "".join(f"<th>{html_text(name)}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _attributes(attrs: Any) -> str:
    """Make a folded list of the user's attributes, without the bookkeeping."""
    rows = [(name, str(attrs[name])[:_VALUE_MAX]) for name in attrs
            if not name.startswith(("_Netcdf4", "_NCProperties"))]
    if not rows:
        return ""
    return f"<details><summary>{len(rows)} attributes</summary>{_table((), rows)}</details>"


def _cells(variable: Variable) -> tuple[str, ...]:
    """Return shape, type, chunks, codec, bound, stored bytes, ratio."""
    shape = ", ".join(f"{name}: {n}" for name, n in zip(variable.dims, variable.shape))
    stored, ratio = variable.stored_bytes, variable.ratio
    kind = variable._model.type
    return (shape or "scalar", "text" if kind == "text" else str(variable.dtype),
            shape_text(variable.chunks) if variable.chunks else "–", variable.codec or "–",
            variable.bound or "–", "–" if stored is None else bytes_text(stored),
            "–" if ratio is None else ratio_text(ratio))


_COLUMNS = ("shape", "type", "chunks", "codec", "bound", "stored", "ratio")


def variable_html(variable: Variable) -> str:
    if not variable._file.is_open:
        return f"<div>{html_text(repr(variable))}</div>"
    return (f"<div><b>{html_text(variable.path)}</b> of {html_text(variable._file.filename)}"
            f"{_table(_COLUMNS, [_cells(variable)])}{_attributes(variable.attrs)}</div>")


def group_html(group: Group) -> str:
    if not group._file.is_open:
        return f"<div>{html_text(repr(group))}</div>"
    parts = [f"<b>{html_text(group.path)}</b> of {html_text(group._file.filename)}"]
    dimensions = ", ".join(f"{name}: {len(one)}{' (unlimited)' if one.unlimited else ''}"
                           for name, one in group.dimensions.items())
    if dimensions:
        parts.append(f"<div>dimensions: {html_text(dimensions)}</div>")
    variables = list(group.variables.items())
    if variables:
        rows = [(name, *_cells(one)) for name, one in variables[:_ROWS_MAX]]
        parts.append(_table(("variable", *_COLUMNS), rows))
    if len(variables) > _ROWS_MAX:
        parts.append(f"<div>and {len(variables) - _ROWS_MAX} more variables</div>")
    groups = list(group.groups.values())
    if groups:
        items = "".join(f"<li>group {html_text(one.path)}: {len(one.variables)} variables</li>"
                        for one in groups[:_ROWS_MAX])
        more = len(groups) - _ROWS_MAX
        parts.append(f"<ul>{items}</ul>" + (f"<div>and {more} more groups</div>" if more > 0
                                            else ""))
    return f"<div>{''.join(parts)}{_attributes(group.attrs)}</div>"
