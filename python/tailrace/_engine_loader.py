"""Finds the extension modules, and explains why they are missing.

`_engine` contains everything except MPI. `_mpi` passes communicators of mpi4py to it; wheels built
without an MPI lack it. TAILRACE_ENGINE_DIR names a folder that contains both, for work on Tailrace
itself.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pathlib
from typing import Any, Optional

from ._errors import ArgumentError, UnsupportedError

_PACKAGE = __package__ or "tailrace"


def _build() -> Any:
    """Return the wheel's record of its build; None in a source tree."""
    try:
        return importlib.import_module("._build", _PACKAGE)
    except ImportError:
        return None


@functools.cache
def engine() -> Any:
    """Return the module _engine. @error UnsupportedError  with the reason if it is missing."""
    built = _build()
    try:
        module: Any = importlib.import_module("._engine", _PACKAGE)
    except ImportError as failure:
        left_out = built is not None and not built.HDF5_VERSION
        why = ("it was built without its engine (TAILRACE_FILTER_ONLY)" if left_out
               else f"its engine does not load: {failure}")
        raise UnsupportedError(
            f"this tailrace cannot read or write files, since {why}. Arrays (tailrace.encode) and "
            "the HDF5 filters for h5py work. Install it again: pip install --force-reinstall "
            "--no-deps ."
        ) from failure
    wanted = getattr(built, "HDF5_VERSION", "")
    if wanted and module.hdf5_version() != wanted:
        raise UnsupportedError(
            f"tailrace was built with HDF5 {wanted}, but reaches HDF5 {module.hdf5_version()}, "
            "which this program has loaded globally; import tailrace first, or load the other "
            "HDF5 without RTLD_GLOBAL")
    # Plug-ins that the engine's own HDF5 finds by default.
    module.search_plugins_in(plugin_path())
    return module


def has_engine() -> bool:
    """True if files can be opened on this platform."""
    try:
        engine()
    except UnsupportedError:
        return False
    return True


@functools.cache
def plugin_path() -> str:
    """Return the folders of filter plug-ins: Tailrace's, and hdf5plugin's if it is installed."""
    from . import _native
    folders = [_native.PLUGIN_PATH]
    found = importlib.util.find_spec("hdf5plugin")
    if found is not None and found.origin:
        folder = pathlib.Path(found.origin).parent / "plugins"
        if folder.is_dir():
            folders.append(str(folder))
    return os.pathsep.join(folders)


def communicator(comm: Any) -> Optional[Any]:
    """Convert a communicator of mpi4py for the engine. Collective over it; None stays None."""
    if comm is None:
        return None
    try:
        from mpi4py import MPI
    except ImportError as failure:
        raise UnsupportedError("comm= needs mpi4py, which is not installed"
                               ) from failure
    if not isinstance(comm, MPI.Comm):
        raise ArgumentError(f"comm= must be a communicator of mpi4py, not {type(comm).__name__}")
    if comm == MPI.COMM_NULL:
        raise ArgumentError("comm= must be a valid communicator, is MPI.COMM_NULL")
    if comm.Get_size() == 1:
        return None
    try:
        bridge: Any = importlib.import_module("._mpi", _PACKAGE)
    except ImportError as failure:
        raise UnsupportedError(
            "this tailrace was built without MPI; install an MPI with its headers "
            f"(libopenmpi-dev or libmpich-dev) and build it again: {failure}") from failure
    ours = bridge.library_version().strip("\0\n ")
    theirs = MPI.Get_library_version().strip("\0\n ")
    if ours != theirs:
        raise UnsupportedError(
            f"tailrace was built with {ours.splitlines()[0]!r}, mpi4py runs on "
            f"{theirs.splitlines()[0]!r}; both must be the same MPI")
    capsule = bridge.communicator(MPI._addressof(comm), MPI._sizeof(MPI.Comm))
    return capsule
