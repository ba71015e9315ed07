"""A filter of Tailrace with its settings, for h5py's create_dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class FilterReference(Mapping[str, Any]):
    """Keywords for create_dataset, also usable as its `compression`. Equal if all items are."""

    filter_id: int
    filter_options: tuple[int, ...]

    @property
    def _keywords(self) -> dict[str, Any]:
        return {"compression": self.filter_id, "compression_opts": self.filter_options}

    def __getitem__(self, key: str) -> Any:
        return self._keywords[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keywords)

    def __len__(self) -> int:
        return len(self._keywords)

    def __hash__(self) -> int:
        return hash((self.filter_id, self.filter_options))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.filter_options == other.filter_options

    def __repr__(self) -> str:
        return f"<tailrace.{type(self).__name__} {self.filter_options}>"
