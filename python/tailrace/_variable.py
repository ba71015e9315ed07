"""A variable of a file: an array whose chunks are decoded on access."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._attributes import Attributes
from ._engine_loader import engine
from ._errors import ArgumentError, CoverageError, TailraceError, UnsupportedError
from ._index import Selection, select
from ._losses import losses_of, refuse
from ._model import ModelVariable, dtype_of, joined, netcdf_path
from ._printable import printable
from ._progress import Progress, progress_bar
from ._rounding import Rounding, rounding_in
from ._types import described_dtype, enum_of

if TYPE_CHECKING:
    from ._file import File

#: Filters of HDF5 and Tailrace, by number; the file names other ones.
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset",
            481: "trz", 482: "xor", 32015: "zstd", 32013: "zfp", 32024: "sz3", 32001: "blosc",
            32026: "blosc2", 32004: "lz4", 32008: "bitshuffle"}

#: Approximate size of the pieces in which values are read and written if progress is shown.
_PIECE_BYTES = 64 << 20


class Variable:
    """An array in a file, indexed like NumPy's; values are read only by indexing.

    Values are returned as stored: fill values are not masked, scale_factor is not applied (xarray
    does both). Threads may share a variable; decoding runs on separate threads, without Python's
    global lock.
    """

    def __init__(self, file: File, position: int) -> None:
        self._file = file
        self._position = position

    # --- properties -------------------------------------------------------------------------------

    @property
    def _model(self) -> ModelVariable:
        return self._file._model().variables[self._position]

    @property
    def name(self) -> str:
        """Name within its group."""
        return self._model.name

    @property
    def path(self) -> str:
        """Absolute path, "/group/name"."""
        variable = self._model
        return joined(self._file._model().groups[variable.group].path, variable.name)

    @property
    def _listed_path(self) -> str:
        """Path by which info() lists the dataset: the first of its hard links."""
        first = self._model.first_path
        return netcdf_path(first) if first else self.path

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of its dimensions, slowest first."""
        model = self._file._model()
        return tuple(model.dimensions[at].name for at in self._model.dimensions)

    @property
    def shape(self) -> tuple[int, ...]:
        """Current lengths of its dimensions."""
        return self._file._model().shape_of(self._model)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type; object for text, and for values that cannot be read."""
        if self._model.type == "other":
            return self._described() or np.dtype(object)
        return dtype_of(self._model.type)

    @property
    def enum(self) -> Optional[dict[str, int]]:
        """Names of an enum's values, which are read as integers; None for other types."""
        return enum_of(self.dtype)

    @property
    def ndim(self) -> int:
        return len(self._model.dimensions)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all values in bytes, uncompressed."""
        return self.size * self.dtype.itemsize

    @property
    def unlimited(self) -> tuple[bool, ...]:
        """True for each dimension that may grow."""
        model = self._file._model()
        return tuple(model.dimensions[at].unlimited for at in self._model.dimensions)

    @property
    def attrs(self) -> Attributes:
        """Its attributes, a mapping."""
        return Attributes(self._file, True, self._position)

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        """Shape of a chunk, the unit of compression; None: contiguous, or not written yet."""
        stored = self._file._storage(self._position)
        return stored.chunk_shape if stored is not None and stored.chunk_shape else None

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the HDF5 filters, in the order of encoding."""
        stored = self._file._storage(self._position)
        if stored is None:
            return ()
        return tuple(_FILTERS.get(number) or name or f"id={number}"
                     for number, name, _ in stored.filters)

    @property
    def codec(self) -> str:
        """Name of the codec as Tailrace recorded it, else the filters joined by '+'; "" for
        none."""
        recorded = str(self.attrs.get("tailrace_codec", ""))
        if recorded not in ("", "unknown"):
            return recorded
        filters = self.filters
        by_deflate = "deflate" in filters and set(filters) <= {"shuffle", "deflate", "fletcher32"}
        return "deflate" if by_deflate and self._is_recorded_exact() else "+".join(filters)

    @property
    def bound(self) -> str:
        """Error bound as requested, "rel=0.001". "none": recorded as exact; "unknown": recorded as
        unknown; "": not recorded."""
        mode = str(self.attrs.get("tailrace_bound_mode", ""))
        if not mode and self._is_recorded_exact():
            return "none"
        if mode in ("", "none"):
            return mode
        try:
            return f"{mode}={float(self.attrs['tailrace_bound_asked']):g}"
        except (KeyError, TypeError, ValueError):
            return mode

    def _is_recorded_exact(self) -> bool:
        """True if the file records that its chunked variables without a note are exact."""
        stored = self._file._storage(self._position)
        return (stored is not None and bool(stored.chunk_shape)
                and "tailrace_codec" not in self.attrs and "tailrace_file" in self._file.attrs
                and not engine().losses_in({}, self._engine_filters()))

    @property
    def stored_bytes(self) -> Optional[int]:
        """Stored bytes of its chunks, from the chunk index; reads no value.

        None for text, and in a file that is being created, where they are unknown.
        """
        return self._file._stored_bytes().get(self._listed_path)

    @property
    def ratio(self) -> Optional[float]:
        """Bytes of all values over stored bytes; None if these are unknown, or 0."""
        stored = self.stored_bytes
        return self.nbytes / stored if stored else None

    # --- reading ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype == bool and key.ndim == self.ndim > 1:
            return self[...][key]
        return self._read(select(key, self.shape))

    def coarse(self, level: int = 1) -> Any:
        """Read every 2**level-th value along the dimensions that coarse views halve. These are the
        last ones, three at most, along which chunks have more than two values.

        If the variable was written with coarse=level or more, only these values are read and
        decoded, a few percent of its bytes; otherwise all chunks are. In x of shape (time, z, y, x)
        with a chunk for each time, coarse(2) is x[:, ::4, ::4, ::4].
        """
        return self[coarse_slices(self, level)]

    def within(self, abs: float, key: Any = ...) -> Any:
        """Read `key` (default: all values) with errors of at most `abs`, or of the variable's own
        bound if that is coarser.

        If the variable was written with refine=K and abs is at least twice its bound, only the
        beginnings of its chunks are read: K bits a value less at 2**K times the bound. Otherwise
        all bytes are read. Fill values and NaN are preserved.
        """
        if not isinstance(abs, (int, float, np.number)) or not abs >= 0:
            raise ArgumentError(f"{self.path}: abs is {abs!r}, must be a number >= 0")
        return self._read(select(key, self.shape), float(abs))

    def _read(self, selection: Selection, abs_bound: float = 0.0) -> Any:
        if self._model.type == "text":
            values = self._read_texts(selection)
        else:
            values = self._read_numbers(selection, abs_bound)
        result = selection.arrange(values)
        return result[()] if result.ndim == 0 else result

    def _read_numbers(self, selection: Selection,
                      abs_bound: float = 0.0) -> np.ndarray[Any, Any]:
        dtype = self._number_type()
        values = np.empty(selection.read_shape, dtype)
        engine_file = self._file._engine_file
        pieces = list(selection.pieces())
        for start, count, stride, target in pieces:
            if len(pieces) == 1:
                engine_file.get(self._position, start, count, stride, _bytes_of(values), abs_bound)
                continue
            part = np.empty(count, dtype)
            engine_file.get(self._position, start, count, stride, _bytes_of(part), abs_bound)
            values[target] = part
        return values

    def _read_texts(self, selection: Selection) -> np.ndarray[Any, Any]:
        values = np.empty(selection.read_shape, object)
        for start, count, stride, target in selection.pieces():
            texts = self._file._engine_file.get_texts(self._position, start, count, stride)
            part = np.empty(len(texts), object)
            part[:] = texts
            values[target] = part.reshape(count)
        return values

    def _described(self) -> Optional[np.dtype[Any]]:
        """Return the type of values that netCDF's classic types do not cover, such as compounds and
        enums."""
        stored = self._file._storage(self._position)
        return described_dtype(stored.type_description) if stored is not None else None

    def _number_type(self) -> np.dtype[Any]:
        if self._model.type == "other":
            stored = self._file._storage(self._position)
            name = stored.type_text if stored else "unknown"
            if self._file._engine_file.writable:
                raise UnsupportedError(f"{self.path}: values of type {name} can only be read, and "
                                       'only in a file opened with mode "r"')
            if self._described() is None:
                raise UnsupportedError(f"{self.path}: values of type {name} are not supported")
        return self.dtype

    def read(self, *, progress: Progress = None) -> Any:
        """Read all values. With progress=True, or a function of the bytes done and all bytes, reads
        piece by piece and shows a progress bar; otherwise like v[...]."""
        shape = self.shape
        if not progress or not shape or self._model.type == "text" or self.nbytes == 0:
            return self[...]
        values = np.empty(shape, self._number_type())
        with progress_bar(progress, f"reading {self.name}") as show_progress:
            for part in self._parts(shape):
                values[part] = self[part]
                show_progress(part.stop * values[:1].nbytes, values.nbytes)
        return values

    def _parts(self, shape: tuple[int, ...]) -> Iterator[slice]:
        """Yield the first dimension in pieces of whole chunks."""
        chunks = self.chunks
        row_bytes = max(1, math.prod(shape[1:]) * self.dtype.itemsize)
        rows = chunks[0] if chunks else 1
        rows *= max(1, _PIECE_BYTES // (rows * row_bytes))
        for start in range(0, shape[0], rows):
            yield slice(start, min(start + rows, shape[0]))

    def read_all(self, key: Any = ...) -> Any:
        """Read this rank's own selection on every rank; None: nothing. Collective.

        If several ranks need a chunk, one of them reads and decodes it. If one rank's selection
        cannot be read, the others raise ArgumentError.
        """
        if key is None:
            self._file._engine_file.get_all([])
            return None
        try:
            selection = select(key, self.shape)
            dtype = self._number_type()
            values = np.empty(selection.read_shape, dtype)
            parts = [(piece, np.empty(piece.extents, dtype)) for piece in selection.pieces()]
        except Exception as failure:  # Release the other ranks, which wait.
            with contextlib.suppress(TailraceError):
                self._file._engine_file.fail_get_all(f"{self.path}: {failure}")
            raise
        self._file._engine_file.get_all([
            (self._position, piece.start, piece.extents, piece.stride, _bytes_of(part))
            for piece, part in parts])
        for piece, part in parts:
            values[piece.target] = part
        return selection.arrange(values)

    # --- writing ----------------------------------------------------------------------------------

    def _engine_filters(self) -> list[int]:
        stored = self._file._storage(self._position)
        return [] if stored is None else [number for number, _, _ in stored.filters]

    def _check_losses(self, source: Any) -> None:
        """Reject lossy values if they would lose more, unless the variable declares them."""
        rounding = self._rounding
        declared = self._position in self._file._losses if rounding is None else rounding.earlier
        if not hasattr(source, "attrs") or declared:
            return
        losses = losses_of(source)
        if losses and (rounding is not None or self._file._engine_file.may_lose(self._position)):
            raise refuse(self.path, losses, "declare them, by create_variable(..., again=True, "
                         f"data=...) or options=\"earlier-loss={losses}\": the file then records "
                         "the sum of all bounds")

    @property
    def _rounding(self) -> Optional[Rounding]:
        """Rounding of written values: as requested, or as an existing file records."""
        roundings = self._file._roundings
        if self._position not in roundings:
            writes = self._model.type in ("f4", "f8") and self._file._mode == "a"
            roundings[self._position] = (rounding_in(dict(self.attrs), self.dtype) if writes
                                         else None)
        return roundings[self._position]

    def _rounded(self, values: np.ndarray[Any, Any], start: Sequence[int], stride: Sequence[int]
                 ) -> np.ndarray[Any, Any]:
        """Round values for their place in the variable."""
        rounding = self._rounding
        if rounding is None:
            return values
        odd = np.zeros(values.shape, bool)
        step = 1  # Values of the variable between neighbours along a dimension.
        for axis in reversed(range(values.ndim)):
            if step % 2:
                at = start[axis] + stride[axis] * np.arange(values.shape[axis])
                odd ^= (at % 2 == 1).reshape([-1] + [1] * (values.ndim - axis - 1))
            step *= self.shape[axis]
        return rounding.apply(values, self.attrs.get("_FillValue"), odd)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_losses(value)
        if self._model.type == "text":
            values = np.asarray(value, dtype=object)
        else:
            if isinstance(value, np.ma.MaskedArray):
                value = value.filled(self._fill_for_masked())
            values = self._as_stored(value)
        selection = select(key, self.shape, unlimited=self.unlimited, value_shape=values.shape)
        try:
            values = selection.spread(values)
        except ValueError as failure:
            raise ArgumentError(f"{self.path}: {failure}") from None
        for start, count, stride, target in selection.pieces():
            part = values[target]
            if self._model.type == "text":
                texts = [str(text) for text in np.asarray(part, object).ravel()]
                self._file._engine_file.put_texts(self._position, start, count, stride, texts)
            else:
                part = self._rounded(part, start, stride)
                self._file._engine_file.put(self._position, start, count, stride, _bytes_of(part))
        if any(self.unlimited):
            self._file._forget_model()

    def _as_stored(self, value: Any) -> np.ndarray[Any, Any]:
        """Convert values to the variable's type; reject those that NumPy would make NaN or
        truncate."""
        dtype = self._number_type()
        values = np.asarray(value)
        if values.dtype == dtype:
            return values
        numbers = values.dtype.kind in "biuf" or (values.dtype.kind == "O" and None not in values)
        if not numbers and dtype.kind in "iuf":
            raise TypeError(f"{self.path} holds numbers of {dtype}, not {values.dtype} such as "
                            f"{values.ravel()[:1].tolist()!r:.60}")
        try:
            return values.astype(dtype)
        except (TypeError, ValueError) as failure:
            raise TypeError(f"{self.path} holds {dtype}: {failure}") from None

    def _fill_for_masked(self) -> Any:
        fill = self.attrs.get("_FillValue")
        if fill is None:
            raise ArgumentError(f"{self.path} has no fill_value to store masked values as")
        return fill

    def write(self, array: Any, *, progress: Progress = None,
              at: Optional[tuple[slice, ...]] = None) -> None:
        """Write all values, piece by piece (dask arrays too), with a progress bar. at: destination,
        a slice of step 1 for each dimension; default: from the beginning."""
        if not hasattr(array, "shape"):
            array = np.asarray(array)
        self._check_losses(array)
        shape = tuple(array.shape)
        if not shape:
            self[...] = _values_of(array)
            return
        starts = [part.start or 0 for part in at] if at else [0] * len(shape)
        rest = tuple(slice(start, start + length)
                     for start, length in zip(starts[1:], shape[1:])) if at else ()
        with progress_bar(progress, f"writing {self.name}") as show_progress:
            row_bytes = max(1, math.prod(shape[1:]) * self.dtype.itemsize)
            for part in self._parts(shape):
                rows = slice(starts[0] + part.start, starts[0] + part.stop)
                self[(rows, *rest)] = _values_of(array[part])
                show_progress(part.stop * row_bytes, shape[0] * row_bytes)

    # --- interfaces of other packages -------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"{self.path} is stored in a file: an array of it is always a copy")
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError(f"{self.path} is a scalar and has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __reduce__(self) -> Any:
        return _reopened, (self._file, self.path)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Variable) and self._file is other._file
                and self._position == other._position)

    def __hash__(self) -> int:
        return hash((id(self._file), self._position))

    def _repr_html_(self) -> str:
        from ._html import variable_html
        return variable_html(self)

    def __repr__(self) -> str:
        if not self._file.is_open:
            return "<tailrace.Variable of a closed file>"
        sizes = ", ".join(f"{name}: {n}" for name, n in zip(self.dims, self.shape))
        kind = self._model.type
        text = (f"<tailrace.Variable {printable(f'{self.path} ({sizes})')} "
                f"{self.dtype if kind == 'other' else _type_text(kind)}")
        chunks, codec = self.chunks, self.codec
        if chunks:
            text += f", chunks {'x'.join(map(str, chunks))}"
        return text + (f", {printable(codec)}>" if codec else ">")


def _bytes_of(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the memory of a dense array for the engine; a copy if it is not dense."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _values_of(array: Any) -> Any:
    """Load values that are not in memory yet (dask's, another file's) as a NumPy array; masks
    stay."""
    return array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def coarse_slices(variable: Variable, level: int) -> tuple[slice, ...]:
    """Return the slices that Variable.coarse() uses."""
    if not isinstance(level, (int, np.integer)) or not 0 <= level <= 16:
        raise ArgumentError(f"{variable.path}: level is {level!r}, must be 0 to 16")
    slices = [slice(None)] * variable.ndim
    left = 3
    for axis, extent in reversed(list(enumerate(variable.chunks or variable.shape))):
        if extent > 2 and left > 0:
            left -= 1
            slices[axis] = slice(None, None, 2**int(level))
    return tuple(slices)


def _type_text(type_name: str) -> str:
    return {"char": "S1", "text": "str"}.get(type_name) or np.dtype(type_name).name


def _reopened(file: File, path: str) -> Variable:
    found = file[path]
    if not isinstance(found, Variable):
        raise CoverageError(f"{path} is a group, expected a variable")
    return found
