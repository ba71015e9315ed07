"""NumPy indexing as slabs: resolves the key of v[...], without a file.

A key becomes, per dimension, one or several runs (start, count, stride), each with its position in
the result. Keys may have integers, slices with any step, Ellipsis, None, and one-dimensional arrays
of integers or booleans. Several arrays select the product of their positions, each along its own
dimension, not pairs of positions (like netCDF4, and xarray's outer indexing).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np

from ._errors import ArgumentError, CoverageError

#: Positions that fill at least one in this many places of their range are read as that range.
_DENSE_ENOUGH = 4


class Run(NamedTuple):
    """Elements of one dimension, and their position in the result."""

    start: int
    n: int
    stride: int
    target: slice


class Piece(NamedTuple):
    """One slab of the selection, and its position in the result (full rank)."""

    start: tuple[int, ...]
    extents: tuple[int, ...]
    stride: tuple[int, ...]
    target: tuple[slice, ...]


@dataclass
class _Axis:
    """Selection along one dimension."""

    runs: list[Run]
    n_read: int  # Elements that are read or written, in ascending order.
    order: Optional[Any] = None  # Reorders the elements that were read: a slice or positions.
    dropped: bool = False  # An integer: the dimension is not in the result.

    @property
    def n_result(self) -> int:
        if self.order is None or isinstance(self.order, slice):
            return self.n_read
        return len(self.order)


class Selection:
    """A key resolved against a shape."""

    def __init__(self, axes: list[_Axis], new_axes: list[int]) -> None:
        self._axes = axes
        #: Lengths in the file, all dimensions kept.
        self.read_shape = tuple(axis.n_read for axis in axes)
        #: Lengths of the result in full rank, before integers drop their dimensions.
        self.full_shape = tuple(axis.n_result for axis in axes)
        kept: list[int] = []
        for position, axis in enumerate(axes):
            kept.extend(1 for _ in range(new_axes.count(position)))
            if not axis.dropped:
                kept.append(axis.n_result)
        kept.extend(1 for _ in range(new_axes.count(len(axes))))
        #: Shape of the result in NumPy.
        self.shape = tuple(kept)

    @property
    def size(self) -> int:
        size = 1
        for count in self.read_shape:
            size *= count
        return size

    def pieces(self) -> Iterator[Piece]:
        """Yield the slabs, in the file's order; none if the selection is empty."""
        if self.size == 0:
            return
        for runs in itertools.product(*(axis.runs for axis in self._axes)):
            yield Piece(tuple(run.start for run in runs), tuple(run.n for run in runs),
                        tuple(run.stride for run in runs), tuple(run.target for run in runs))

    def end(self) -> tuple[int, ...]:
        """Return one past the last selected element of each dimension; 0 if none is selected."""
        return tuple(
            max((run.start + (run.n - 1) * run.stride + 1 for run in axis.runs if run.n),
                default=0)
            for axis in self._axes)

    def arrange(self, values: Any) -> Any:
        """Convert the values that were read (read_shape) to the result."""
        for position, axis in enumerate(self._axes):
            if axis.order is None:
                continue
            if isinstance(axis.order, slice):
                values = values[(slice(None),) * position + (axis.order,)]
            else:
                values = np.take(values, axis.order, axis=position)
        # Elements that are arrays themselves add dimensions.
        return values.reshape(self.shape + values.shape[len(self._axes):])

    def spread(self, values: Any) -> Any:
        """Convert values for the result (any that broadcast to it) to read_shape.

        The last one of duplicate positions counts, as in NumPy.
        """
        values = np.broadcast_to(values, self.shape).reshape(self.full_shape)
        for position, axis in enumerate(self._axes):
            if axis.order is None:
                continue
            if isinstance(axis.order, slice):
                values = values[(slice(None),) * position + (axis.order,)]
            else:
                source = np.zeros(axis.n_read, dtype=np.intp)
                source[axis.order] = np.arange(len(axis.order))
                values = np.take(values, source, axis=position)
        return values


def _integer_axis(index: int, length: int, position: int, grows: bool) -> _Axis:
    at = index + length if index < 0 else index
    if at < 0 or (at >= length and not grows):
        raise CoverageError(f"index {index} is outside dimension {position} of length {length}")
    return _Axis([Run(at, 1, 1, slice(0, 1))], 1, dropped=True)


def _slice_axis(key: slice, length: int, grows: bool, n_values: Optional[int]) -> _Axis:
    step = 1 if key.step is None else int(key.step)
    if step == 0:
        raise ArgumentError("a slice's step cannot be 0")
    if grows and step > 0:
        # Values may lie beyond the end: up to the given stop, or as many as are given.
        start, stop, _ = key.indices(max(length, key.start or 0, 0))
        if key.stop is not None and key.stop > length:
            stop = int(key.stop)
        if key.stop is None and n_values is not None:
            stop = max(stop, start + (n_values - 1) * step + 1)
    else:
        start, stop, step = key.indices(length)
    count = len(range(start, stop, step))
    if step > 0:
        return _Axis([Run(start, count, step, slice(0, count))], count)
    last = start + (count - 1) * step if count else 0
    return _Axis([Run(last, count, -step, slice(0, count))], count, order=slice(None, None, -1))


def _runs_of(positions: Any) -> list[Run]:
    """Convert ascending positions to runs of constant stride."""
    runs: list[Run] = []
    at = 0
    while at < len(positions):
        end = at + 1
        stride = int(positions[end] - positions[at]) if end < len(positions) else 1
        while end < len(positions) and positions[end] - positions[end - 1] == stride:
            end += 1
        if end == at + 1:
            stride = 1
        runs.append(Run(int(positions[at]), end - at, stride, slice(at, end)))
        at = end
    return runs


def _array_axis(key: Any, length: int, position: int, grows: bool, reading: bool) -> _Axis:
    if key.ndim == 0 and key.dtype.kind not in "biu":
        raise TypeError(f"dimension {position}: an index is an integer, a slice, ... or an array "
                        f"of these, not {key.item()!r:.60}")
    if key.ndim != 1:
        raise ArgumentError(f"dimension {position}: an index array must have one dimension, "
                            f"not {key.ndim}")
    if key.dtype == bool:
        if len(key) != length:
            raise CoverageError(f"dimension {position} has {length} elements, but its mask has "
                                f"{len(key)}")
        key = np.flatnonzero(key)
    if key.size and key.dtype.kind not in "iu":
        raise ArgumentError(f"dimension {position}: index arrays are integers or booleans, "
                            f"not {key.dtype}")
    positions = key.astype(np.int64)
    positions = np.where(positions < 0, positions + length, positions)
    beyond = not grows and positions.size and positions.max() >= length
    if positions.size and (positions.min() < 0 or beyond):
        raise CoverageError(f"an index of {key.tolist()!r:.60} is outside dimension {position} "
                            f"of length {length}")
    if positions.size == 0:
        return _Axis([Run(0, 0, 1, slice(0, 0))], 0)
    ascending, order = np.unique(positions, return_inverse=True)
    order = order.reshape(-1)
    in_order = len(ascending) == len(positions) and bool((np.diff(positions) > 0).all())
    runs = _runs_of(ascending)
    first = int(ascending[0])
    span = int(ascending[-1]) - first + 1
    if reading and len(runs) > 1 and span <= _DENSE_ENOUGH * len(ascending):
        return _Axis([Run(first, span, 1, slice(0, span))], span, order=positions - first)
    return _Axis(runs, len(ascending), order=None if in_order else order)


def _expanded(key: Any, rank: int) -> tuple[list[Any], list[int]]:
    """Return one entry per dimension, and the dimensions before which None adds new ones."""
    entries = list(key) if isinstance(key, tuple) else [key]
    n_given = sum(1 for entry in entries if entry is not None and entry is not Ellipsis)
    n_dots = sum(1 for entry in entries if entry is Ellipsis)
    if n_dots > 1:
        raise ArgumentError("an index can have only one Ellipsis ('...')")
    if n_given > rank:
        raise CoverageError(f"the index has {n_given} entries, the array has {rank} dimensions")
    if n_dots == 0:
        entries.append(Ellipsis)
    full: list[Any] = []
    new_axes: list[int] = []
    for entry in entries:
        if entry is None:
            new_axes.append(len(full))
        elif entry is Ellipsis:
            full.extend(slice(None) for _ in range(rank - n_given))
        else:
            full.append(entry)
    return full, new_axes


def select(key: Any, shape: Sequence[int], *, unlimited: Optional[Sequence[bool]] = None,
           value_shape: Optional[Sequence[int]] = None) -> Selection:
    """Resolve a key. For writing, `unlimited` marks the dimensions that may grow, and
    `value_shape`, the shape of the values, limits open slices of those.

    >>> select((slice(None, None, -2), 3), (5, 8)).shape
    (3,)
    >>> [piece[:3] for piece in select([1, 2, 40, 42, 44], (64,)).pieces()]
    [((1,), (2,), (1,)), ((40,), (3,), (2,))]
    """
    entries, new_axes = _expanded(key, len(shape))
    reading = unlimited is None
    grows = [False] * len(shape) if unlimited is None else list(unlimited)
    # Values align with the kept dimensions from the last one backwards.
    given = list(value_shape or ())
    n_values: list[Optional[int]] = []
    for entry in reversed(entries):
        integer = isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))
        n_values.append(None if integer or not given else given.pop())
    n_values.reverse()
    axes: list[_Axis] = []
    for position, (entry, length) in enumerate(zip(entries, shape)):
        if isinstance(entry, (bool, np.bool_)):
            raise ArgumentError("a single boolean cannot be an index")
        if isinstance(entry, (int, np.integer)):
            axes.append(_integer_axis(int(entry), length, position, grows[position]))
        elif isinstance(entry, slice):
            axes.append(_slice_axis(entry, length, grows[position], n_values[position]))
        else:
            axes.append(
                _array_axis(np.asarray(entry), length, position, grows[position], reading))
    return Selection(axes, new_axes)
