"""The filters trz and xor for every HDF5 of this process, whichever package contains it.

Invariant: importing this package does not affect the import of another package. It sets no
environment variable, adds no folder to an HDF5's search list and imports no HDF5. netCDF4's wheel
uses its own plug-ins only if HDF5_PLUGIN_PATH is unset, child processes inherit that variable, and
some HDF5s read it when they are imported.

Mechanism: H5Zregister registers the filter classes with each HDF5. HDF5s in the process get them
immediately. Those of h5py, netCDF4 and PyTables get them at the end of these packages' import,
which a finder on sys.meta_path observes. HDF5s that other packages load later need register(),
programs need HDF5_PLUGIN_PATH. Registration is not protected against threads that use HDF5 at the
same time.

The package tailrace-filters is this file and the plug-ins, and needs only Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

#: Numbers of Tailrace's filters, in HDF5's range for testing.
FILTERS = {"trz": 481, "xor": 482}
#: Packages that contain an HDF5, each with an extension module that is linked to it.
_EXTENSIONS = {"h5py": "h5py.h5z", "netCDF4": "netCDF4._netCDF4", "tables": "tables.hdf5extension"}
#: The engine registers the filters itself, and replaces the classes while it writes files.
_ENGINE = "tailrace._engine"
_HDF5_FILE = re.compile(r"/libhdf5[^/]*\.so[^/]*$")


def load(path: os.PathLike[str]) -> ctypes.CDLL:
    """Load a plug-in, which must exist as long as every HDF5 that knows its filter."""
    library = ctypes.CDLL(str(path))
    library.H5PLget_plugin_info.restype = ctypes.c_void_p
    return library


def import_h5py() -> None:
    """Import h5py if it is installed; only a user's call of register() does this."""
    with contextlib.suppress(ImportError):
        import h5py  # noqa: F401


def register(libraries: Sequence[ctypes.CDLL]) -> bool:
    """Register plug-ins' filters with all HDF5s of this process. False: none of them is h5py's."""
    files = {name: getattr(sys.modules.get(module), "__file__", None)
             for name, module in _EXTENSIONS.items()}
    of_h5py = _address_in(files.pop("h5py"))
    _register([*files.values(), *_loaded_hdf5s()], libraries, but={of_h5py})
    if not sys.modules.get("h5py"):
        return False
    import h5py
    if not hasattr(h5py.h5z, "register_filter"):  # h5py 3.8 and older
        _register([h5py.h5z.__file__], libraries)
    elif of_h5py != _address_in_engine() or of_h5py is None:
        for library in libraries:  # h5py itself registers, under its lock
            h5py.h5z.register_filter(library.H5PLget_plugin_info())
    return True


def whenever_hdf5_comes(then: Callable[[], object]) -> None:
    """Call `then` now and after the import of each package that contains an HDF5."""
    observe_imports(_EXTENSIONS, then, "register trz and xor with its HDF5")
    then()


def observe_imports(packages: Iterable[str], then: Callable[[], object], purpose: str) -> None:
    """Call `then` after the import of each of these packages. purpose: verb and object, for the
    warning if `then` fails."""
    sys.meta_path.insert(0, _Observer(tuple(packages), then, purpose))


class _Observer:
    """A finder that returns the result of the later finders, and observes the import until its
    end."""

    def __init__(self, packages: Sequence[str], then: Callable[[], object], purpose: str) -> None:
        self._packages = packages
        self._then = then
        self._purpose = purpose

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        if name not in self._packages or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1:]:
            find = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(name, path, target) if find else None
            if spec is not None:
                self._observe(spec)
                return spec
        return None

    def _observe(self, spec: ModuleSpec) -> None:
        """Make the spec's own loader, which other code may inspect, call `then` when it is done."""
        loader: Any = spec.loader
        execute: Optional[Callable[[ModuleType], None]] = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            execute(module)
            vars(loader).pop("exec_module", None)
            if module.__name__ != spec.name:
                return
            try:
                self._then()
            except Exception as failure:  # noqa: BLE001 - the other package is imported, and works.
                warnings.warn(f"{spec.name}: cannot {self._purpose}: {failure!r}", stacklevel=2)

        with contextlib.suppress(AttributeError):  # a loader without a __dict__ stays unchanged
            loader.exec_module = exec_module


def _register(files: Iterable[Optional[str]], libraries: Sequence[ctypes.CDLL],
              but: Iterable[Optional[int]] = ()) -> None:
    """Register filters once with each HDF5 that one of these files is, or is linked to."""
    served = {*but, _address_in_engine(), None}
    for file in files:
        address = _address_in(file)
        if address in served:
            continue
        served.add(address)
        # PyDLL holds Python's lock, so Python's other threads cannot enter HDF5.
        register = ctypes.PyDLL(file, mode=os.RTLD_NOLOAD).H5Zregister
        register.argtypes = [ctypes.c_void_p]
        for library in libraries:
            register(library.H5PLget_plugin_info())


def _address_in(file: Optional[str]) -> Optional[int]:
    """Return the address of H5Zregister in a library or in one that it is linked to. None: it has
    no such symbol, or is not loaded."""
    try:
        function = ctypes.PyDLL(file, mode=os.RTLD_NOLOAD).H5Zregister if file else None
    except (OSError, AttributeError):
        return None
    return ctypes.cast(function, ctypes.c_void_p).value if function else None


def _address_in_engine() -> Optional[int]:
    return _address_in(getattr(sys.modules.get(_ENGINE), "__file__", None))


def _loaded_hdf5s() -> list[str]:
    """Return the files of HDF5s in this process; empty if the system does not list its files."""
    try:
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    found = (line[line.find("/"):] for line in maps.splitlines() if "/libhdf5" in line)
    return sorted({path for path in found if _HDF5_FILE.search(path)})
