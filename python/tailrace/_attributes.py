"""Attributes of a file, group or variable as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from ._errors import NotFoundError, text_of
from ._model import Encoded, decode_attribute, encode_attribute

if TYPE_CHECKING:
    from ._file import File


class Attributes(MutableMapping[str, Any]):
    """A live mapping: reading accesses the file, setting changes it (collective on a communicator).

    Texts are str, single numbers NumPy scalars, several numbers NumPy arrays.
    """

    def __init__(self, file: File, of_variable: bool, position: int) -> None:
        self._file = file
        self._of_variable = of_variable
        self._position = position

    def _entries(self) -> dict[str, Encoded]:
        return self._file._attribute_entries(self._of_variable, self._position)

    def __getitem__(self, name: str) -> Any:
        found = self._entries().get(name)
        if found is None:
            raise KeyError(name)
        return decode_attribute(*found)

    def __setitem__(self, name: str, value: Any) -> None:
        name = text_of("the name of an attribute", name)
        type_name, n_values, data = encode_attribute(name, value)
        self._file._edit("set_attribute", self._of_variable, self._position, name, type_name,
                         n_values, data)

    def __delitem__(self, name: str) -> None:
        try:
            self._file._edit("delete_attribute", self._of_variable, self._position, name)
        except NotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def __repr__(self) -> str:
        return f"<tailrace.Attributes {dict(self)!r}>"
