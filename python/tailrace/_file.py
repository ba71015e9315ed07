"""tailrace.open, and the File that it returns."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional, Union

from ._engine_loader import communicator, engine, plugin_path
from ._errors import (ArgumentError, CorruptError, ExistsError, StorageError, TailraceError,
                      UnsupportedError, text_of)
from ._group import Group
from ._keywords import CODECS, FILE, READING, VARIABLE, Bytes, given, with_hints
from ._model import Encoded, Model, netcdf_path
from ._printable import printable, warn
from ._rounding import Rounding
from ._settings import option_text

_MODES = ("r", "w", "a", "x")
_BOUND_KEYWORDS = ("bound", "abs", "rel", "pw_rel", "psnr")  # Reading has another `abs`.


@dataclass(frozen=True)
class Storage:
    """Storage of a variable in the file."""

    kind: str
    type_text: str
    chunk_shape: tuple[int, ...]
    filters: tuple[tuple[int, str, tuple[int, ...]], ...]
    type_description: str = ""
    plain_number: bool = False  # A number type of NumPy, in either byte order.
    swapped: bool = False  # True: not in this machine's byte order.
    elsewhere: bool = False  # In other files.
    plain_edges: bool = False  # Chunks over the edge are stored without filters.
    data_address: int = 0  # Address of contiguous data; 0: never written.


class File(Group):
    """An open file: the root group. tailrace.open returns it.

    Collective on a communicator: opening, all definitions and attributes, flush() and close().
    Reading and writing variables is not collective; other ranks see written values after flush().
    Leaving a `with` block by an exception drops what was written since the last flush(), like
    abort(). With a communicator it cannot wait for the other ranks, and drops the file. A forked
    child can read a file that its parent reads; a file opened for writing remains the parent's.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], mode: str = "r", comm: Any = None,
                 options: str = "") -> None:
        if mode not in _MODES:
            raise ArgumentError(f"mode is {mode!r}, must be one of {', '.join(_MODES)}")
        self._mode = mode
        self._options = text_of("options", options)
        self._snapshot: Optional[Model] = None
        self._attributes: dict[tuple[bool, int], dict[str, Encoded]] = {}
        self._storages: dict[int, Storage] = {}
        self._losses: dict[int, str] = {}  # Declared for variables created here, by position.
        #: Roundings of variables by position; None: of a variable that was created without one.
        self._roundings: dict[int, Optional[Rounding]] = {}
        self._sizes: Optional[dict[str, int]] = None
        self.filename = path_of(path, mode != "r")
        handle = communicator(comm)
        self._parallel = handle is not None
        self._comm = comm
        self._before = _inode(self.filename)
        # True if written values may need a filter that not every HDF5 has.
        self._may_need_filters = any(key in options for key in ("codec", "bound", "target"))
        try:
            self._engine_file: Any = engine().open(
                path=self.filename, mode=mode, options=options, plugin_path=plugin_path(),
                comm=handle)
        except (StorageError, ExistsError) as failure:
            hint = "" if comm is not None else _forgotten_communicator(str(failure))
            raise type(failure)(str(failure).replace("option replace=on", 'mode "w"') +
                                hint) from None
        except CorruptError as failure:
            raise CorruptError(_other_format(self.filename) or str(failure)) from None
        if self._engine_file.rank == 0:
            for remark in self._engine_file.remarks():
                warn(remark)
        self._position = 0
        # Close a file that is dropped without close(), unless that needs other ranks.
        self._finalizer = weakref.finalize(self, _close_dropped, self._engine_file, mode != "r",
                                           not self._parallel, self.filename, os.getpid())

    @property
    def _file(self) -> File:
        return self  # no reference is stored, so that an unused file is closed immediately

    # --- state ------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def is_open(self) -> bool:
        return bool(self._engine_file.is_open)

    @property
    def rank(self) -> int:
        """Rank of this process in the communicator."""
        return int(self._engine_file.rank)

    @property
    def n_ranks(self) -> int:
        return int(self._engine_file.n_ranks)

    @property
    def steps(self) -> range:
        """Numbers of the steps that are complete: entries that every variable with an unlimited
        first dimension has. Empty without such a variable. Not collective.

        >>> import numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.nc")
        >>> with open(path, "w") as file:
        ...     _ = file.create_dimension("time", None)
        ...     _ = file.create_variable("u", ("time", "x"), data=np.zeros((3, 4)))
        >>> with open(path) as file:
        ...     file.steps, file.last_step, [float(file["u"][step].sum()) for step in file.steps]
        (range(0, 3), 2, [0.0, 0.0, 0.0])
        """
        model = self._model()
        lengths = [model.dimensions[variable.dimensions[0]].length for variable in model.variables
                   if variable.dimensions and model.dimensions[variable.dimensions[0]].unlimited]
        return range(min(lengths, default=0))

    @property
    def last_step(self) -> Optional[int]:
        """Number of the last complete step, from which a program can continue; None: no step. Not
        collective."""
        return self.steps[-1] if self.steps else None

    @property
    def report(self) -> dict[str, float]:
        """Counters so far: of this rank's reads, or of all ranks' flushes."""
        return dict(self._engine_file.report())

    def flush(self) -> None:
        """Compress, write and commit everything written to variables. Collective.

        Afterwards the file also has variables without values. It lacks those whose codec or
        recorded bound depends on their first values (a bound without `codec`, `rel`, `psnr`, a
        target).
        """
        self._flush()
        self._warn_of_bounds()

    def _flush(self) -> None:
        self._engine_file.flush()
        self._forget_model()

    def _warn_of_bounds(self) -> None:
        """Warn of bounds that mean little for the written values. Rank 0 has the remarks."""
        for remark in self._engine_file.take_remarks():
            warn(f"{self.filename}: {remark}")

    def close(self) -> None:
        """Flush and close. Collective. Further calls do nothing."""
        self._finalizer.detach()
        may_need = self._may_need_filters and self.is_open and self._mode != "r" and not self.rank
        self._forget_model()
        try:
            self._engine_file.close()
        except ArgumentError as failure:
            if self._mode not in ("w", "x", "w-") or not _is_other(self.filename, self._before):
                raise
            raise type(failure)(f"{failure}; the incomplete file stays as "
                                f"{self.filename}") from None
        finally:
            self._warn_of_bounds()
        if may_need:
            from ._sharing import log_what_readers_need
            log_what_readers_need(self.filename)

    def abort(self) -> None:
        """Close without writing unflushed values; remove a file that was never flushed. Collective.
        """
        self._finalizer.detach()
        self._forget_model()
        self._engine_file.abort()

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.close()
        elif not self._parallel:
            self.abort()
        else:
            self._finalizer.detach()
            del self._engine_file
            self._engine_file = _Dropped(self.filename)

    # --- for groups and variables -----------------------------------------------------------------

    def _model(self) -> Model:
        snapshot = self._snapshot
        if snapshot is None:
            snapshot = self._snapshot = Model(self._engine_file.model())
        return snapshot

    def _forget_model(self) -> None:
        self._snapshot = None
        self._attributes.clear()
        self._storages.clear()
        self._sizes = None

    def _edit(self, what: str, *arguments: Any) -> None:
        try:
            getattr(self._engine_file, what)(*arguments)
        finally:
            self._forget_model()

    def _check_options(self, text: str) -> None:
        engine().check_options(text)

    def _attribute_entries(self, of_variable: bool, position: int) -> dict[str, Encoded]:
        key = (of_variable, position)
        if key not in self._attributes:
            ask = (self._engine_file.variable_attributes if of_variable
                   else self._engine_file.group_attributes)
            self._attributes[key] = {name: (type_name, n_values, value)
                                     for name, type_name, n_values, value in ask(position)}
        return self._attributes[key]

    def _storage(self, position: int) -> Optional[Storage]:
        if position not in self._storages:
            found = self._engine_file.storage(position)
            if found is None:
                return None
            self._storages[position] = Storage(*found)
        return self._storages[position]

    def _stored_bytes(self) -> dict[str, int]:
        """Return the stored bytes of the number variables by path, looked up once. They are unknown
        in a file that is being created or replaced: the file under its name may be another one."""
        if self._sizes is None:
            sizes: dict[str, int] = {}
            if self._mode in ("r", "a"):
                try:
                    document, _ = engine().info(self.filename, "")
                except TailraceError:
                    document = {"fields": []}
                sizes = {netcdf_path(field["path"]): int(field["stored_bytes"])
                         for field in document["fields"]}
            self._sizes = sizes
        return self._sizes

    def __reduce__(self) -> Any:
        if self._mode != "r" or self._parallel:
            raise UnsupportedError(f"{self.filename}: only files that a single process opened for "
                                   "reading can be pickled")
        return _open_again, (os.path.abspath(self.filename), self._options)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def path_of(path: Any, writes: bool = False) -> str:
    """Return the path as a text. writes: a file is written there.

    @error TypeError  bytes of a file, or a file object.   @error UnsupportedError  a URL.
    """
    is_path = isinstance(path, (str, bytes, os.PathLike))
    if not is_path or (isinstance(path, bytes) and path.startswith((b"\x89HDF", b"CDF"))):
        given = "the bytes of a file" if is_path else f"a {type(path).__name__}"
        instead = ("write a file, and read its bytes" if writes else
                   "write the bytes to a file and give its path, or give a file object to h5py.File"
                   " or xarray.open_dataset(..., engine=\"h5netcdf\"), which have Tailrace's "
                   "codecs after `import tailrace`")
        raise TypeError(f"expected a path, found {given}: {instead}")
    text = os.fsdecode(path)
    scheme = re.match(r"[a-z][a-z0-9+.-]+(?=://)", text, re.IGNORECASE)
    if scheme and not os.path.exists(text):
        remote = scheme[0].rpartition(":")[2].lower()
        instead = ("give the path without file://" if remote == "file" else
                   f"write a file, then copy it there: fsspec.filesystem(\"{remote}\").put(...)"
                   if writes else
                   f"copy it: fsspec.open_local(\"simplecache::{text}\") returns the path; or read "
                   f"it where it is: xarray.open_dataset(fsspec.open(\"{text}\").open(), "
                   "engine=\"h5netcdf\") has Tailrace's codecs after `import tailrace`")
        raise UnsupportedError(printable(f"{text}: URLs are not supported, only paths of files; "
                                         f"{instead}"))
    return text


class _Dropped:
    """Replaces the engine's file after an exception among several ranks."""

    is_open = False

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError(f"{self._path} was abandoned when an exception left its with block")


_opened_again: weakref.WeakValueDictionary[tuple[str, str, int, int], File] = (
    weakref.WeakValueDictionary())


def _inode(path: str) -> Optional[int]:
    """Return the number of the file with this name; None: no such file."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _is_other(path: str, before: Optional[int]) -> bool:
    return _inode(path) not in (None, before)


def _open_again(path: str, options: str) -> File:
    """Open for reading; tasks of one worker process share the file as long as it is unchanged."""
    state = os.stat(path)
    key = (path, options, state.st_mtime_ns, state.st_ino)
    found = _opened_again.get(key)
    if found is None or not found.is_open:
        found = _opened_again[key] = File(path, "r", options=options)
    return found


def _forgotten_communicator(failure: str) -> str:
    """Return a hint if ranks of this program may each write the file alone, else nothing."""
    mpi = sys.modules.get("mpi4py.MPI")
    caused = any(part in failure for part in (" is being written by ", "exists"))
    if mpi is None or not caused or not mpi.Is_initialized() or mpi.Is_finalized():
        return ""
    n_ranks = mpi.COMM_WORLD.size
    return "" if n_ranks == 1 else (
        f"; this process opened the file for itself, but MPI has {n_ranks} ranks: to share the "
        "file, pass comm=MPI.COMM_WORLD")


def _other_format(path: str) -> str:
    """Return the error for a file of another format; empty: it begins like HDF5, or behind a user
    block."""
    try:
        with io.open(path, "rb") as file:  # noqa: UP020 (open is this module's own)
            size = os.fstat(file.fileno()).st_size
            first = file.read(8)
            at = 0
            while at < size:  # HDF5 searches its signature at 0, 512, 1024, 2048, ...
                file.seek(at)
                if file.read(8) == b"\x89HDF\r\n\x1a\n":
                    return ""
                at = 2 * at or 512
    except OSError:
        return ""
    if not first:
        return f"{path}: the file is empty"
    shown = "".join(chr(one) if 32 <= one < 127 else "." for one in first)
    return f'{path}: expected HDF5 or netCDF-4, but the file begins with "{shown}"'


def _close_dropped(engine_file: Any, writes: bool, alone: bool, path: str, pid: int) -> None:
    """Close a file that was dropped without close(). A failure goes to stderr and the exit status.
    A file of several ranks cannot be closed by one of them, and loses what was not flushed."""
    if os.getpid() != pid:
        return
    if writes and engine_file.is_open:
        warnings.warn(f"unclosed file {printable(path)!r}", ResourceWarning, stacklevel=2)
        if alone:  # Python hides ResourceWarning by default.
            print(printable(f"tailrace: the program did not close {path}; closing it now"),
                  file=sys.stderr, flush=True)
    if not alone:
        if writes and engine_file.is_open and engine_file.rank == 0:
            print(printable(f"tailrace: the program did not close {path}; what was written since "
                            "the last flush() is lost; call close() on all ranks before "
                            "MPI.Finalize()"), file=sys.stderr, flush=True)
        return
    try:
        engine_file.close()
        for remark in engine_file.take_remarks():
            print(printable(f"tailrace: {path}: {remark}"), file=sys.stderr, flush=True)
    except Exception as error:  # noqa: BLE001 - a finalizer has no caller that could catch it.
        print(printable(f"tailrace: the program did not close {path}, and closing it now failed: "
                        f"{error}"), file=sys.stderr, flush=True)
        engine().end_with_failure()


@with_hints
def open(  # noqa: A001
    path: Union[str, os.PathLike[str]], mode: str = "r", comm: Any = None, options: str = "", *,
    threads: Optional[int] = None, memory: Optional[Bytes] = None, read: Optional[Bytes] = None,
    gap: Optional[Bytes] = None, prefetch: Optional[bool] = None,
    follow_external: Optional[bool] = None, codec: Optional[str] = None,
    bound: Optional[str] = None, abs: Optional[float] = None, rel: Optional[float] = None,
    pw_rel: Optional[float] = None, psnr: Optional[float] = None,
    chunks: Union[str, Sequence[int], None] = None, buffer: Optional[Bytes] = None,
    align: Optional[Bytes] = None, fsync: Optional[bool] = None, journal: Optional[bool] = None,
    replace: Optional[bool] = None, compatibility: Optional[str] = None,
    attributes: Optional[str] = None, for_: Optional[str] = None,
    why: Union[bool, str, None] = None, target: Optional[str] = None,
    profile: Optional[str] = None, plugin_path: Optional[str] = None,
    preset: Optional[str] = None,
    predictor: Optional[str] = None, dimension: Optional[int] = None,
    spline: Optional[str] = None, last_axis: Union[int, str, None] = None,
    lossless: Optional[bool] = None, coarse: Optional[int] = None,
    refine: Optional[int] = None, book: Optional[str] = None, level: Optional[int] = None,
    shuffle: Optional[bool] = None, engine: Optional[str] = None,
    checksum: Optional[bool] = None, rate: Optional[float] = None,
    precision: Optional[int] = None, reversible: Optional[bool] = None,
    block: Optional[int] = None, inner: Optional[str] = None, swap: Optional[bool] = None,
    missing: Optional[str] = None, cd: Optional[str] = None,
    guard: Optional[str] = None, earlier_loss: Optional[str] = None,
    layout: Optional[str] = None, verify: Union[bool, str, None] = None,
    allow_wide_bound: Optional[bool] = None, holes: Optional[bool] = None,
    roles: Optional[bool] = None,
) -> File:
    """Open a netCDF-4 file (for reading: any HDF5 file).

    mode: "r" read (default); "w" create, replacing an existing file; "x" create, refusing to
    replace; "a" read and write, creating a missing file, and repairing what a killed job left.
    comm: a communicator of mpi4py, all of whose ranks call this; default: only this process.
    options: "key=value,...", and for writing "GLOB: options" for variables (docs/python.md).
    The other arguments are the same options, for reading (docs/read.md): threads, memory, read,
    gap, abs, prefetch, follow_external, plugin_path; for writing (docs/options.md) all but read,
    gap, prefetch and follow_external, with the bounds and settings of create_variable() as defaults
    of its variables. Default: see these pages. Parts of the file that cannot be read (a damaged
    attribute) cause a RuntimeWarning.

    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "waves.nc")
    >>> u = np.sin(np.linspace(0, 20, 40 * 50, dtype="f4")).reshape(40, 50)
    >>> with open(path, "w") as file:
    ...     _ = file.create_variable("u", ("y", "x"), data=u, abs=1e-3, attrs={"units": "m"})
    >>> with open(path) as file:
    ...     v = file["u"]
    ...     v.dims, v.shape, v.attrs["units"], bool(abs(v[3:, ::2] - u[3:, ::2]).max() <= 1e-3)
    (('y', 'x'), (40, 50), 'm', True)
    """
    keywords = given(locals(), READING, [name for name in FILE if name not in READING], CODECS,
                     VARIABLE, ("codec", "chunks", *_BOUND_KEYWORDS))
    if keywords:
        options = _options_of(path, mode, text_of("options", options), keywords)
    return File(path, mode, comm, options)


def _options_of(path: Any, mode: str, options: str, keywords: dict[str, Any]) -> str:
    """Return keywords of open() and its options as one text."""
    bounds = {} if mode == "r" else {key: keywords.pop(key, None) for key in _BOUND_KEYWORDS}
    settings = {key.rstrip("_"): value for key, value in keywords.items()}
    return option_text(str(path), codec=settings.pop("codec", None),
                       **{key: bounds.get(key) for key in _BOUND_KEYWORDS},
                       chunks=settings.pop("chunks", None), options=options, settings=settings)
