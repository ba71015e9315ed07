"""Compressed netCDF-4 and HDF5 files, written and read in parallel, with guaranteed error bounds.

Files are ordinary netCDF-4; the interface follows netCDF4 and h5netcdf:

    with tailrace.open("waves.nc", "w") as file:
        file.create_variable("u", ("y", "x"), data=u, abs=1e-3)
    with tailrace.open("waves.nc") as file:
        u = file["u"][10:20, ::4]

With a communicator of mpi4py (comm=) all its ranks write and read one file. xarray opens files with
engine="tailrace". tailrace.verify compares a compressed file with its original, tailrace.info shows
how a file is stored.

Importing this package also registers its HDF5 filters with h5py, whether h5py is imported before or
after. h5py and h5netcdf can then read files written with trz, and write them by

    file.create_dataset("u", data=u, **tailrace.Trz(abs=1e-3))

netCDF4 and PyTables read them, too. For other programs (h5dump, ParaView) set HDF5_PLUGIN_PATH to
tailrace.PLUGIN_PATH before they start. encode() and decode() handle arrays in memory:

>>> import numpy as np, tailrace
>>> u = np.sin(np.linspace(0, 9, 4096, dtype="f4")).reshape(64, 64)
>>> encoded = tailrace.encode(u, abs=1e-3)
>>> decoded = tailrace.decode(encoded, shape=u.shape)
>>> bool(np.abs(u - decoded).max() <= 1e-3)
True
"""

import importlib as _importlib
import os as _os
from typing import Any as _Any

# Folder of a locally built engine, for work on Tailrace itself.
if _os.environ.get("TAILRACE_ENGINE_DIR"):
    __path__.append(_os.environ["TAILRACE_ENGINE_DIR"])

from ._accessor import whenever_xarray_comes as _whenever_xarray_comes
from ._arrays import ChunkSummary, decode, describe, encode, train_book
from ._attributes import Attributes
from ._errors import BoundError, CopyError, TailraceError
from ._file import File, open  # noqa: A004
from ._group import Dimension, Group
from ._information import Bits, BitTable, bits
from ._native import FILTER_ID, PLUGIN_PATH, TrzError, __version__
from ._plugins import whenever_hdf5_comes as _whenever_hdf5_comes
from ._references import references
from ._report import Report, VariableReport, report
from ._settings import Trz, cd_values, register
from ._settings import serve as _serve_trz
from ._sharing import Portable, make_portable
from ._suggest import BoundEffect, BoundTable, BoundTables, suggest_bound
from ._tools import Info, Verification, info, verify, write_dataset, write_datatree
from ._variable import Variable
from ._xor import Xor, register_xor
from ._xor import serve as _serve_xor

__all__ = [
    "Attributes", "BitTable", "Bits", "BoundEffect", "BoundError", "BoundTable", "BoundTables",
    "ChunkSummary", "CopyError", "Dimension", "FILTER_ID", "File", "Group", "Info", "PLUGIN_PATH",
    "Portable", "Report", "TailraceError", "Trz", "TrzError", "Variable", "VariableReport",
    "Verification", "Xor", "__version__", "bits", "cd_values", "decode", "describe", "encode",
    "info", "make_portable", "open", "references", "register", "register_xor", "report",
    "suggest_bound", "train_book", "verify", "write_dataset", "write_datatree",
]



def __getattr__(name: str) -> _Any:
    """Import the codecs of numcodecs and zarr on first access."""
    if name in ("numcodecs", "zarr"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_whenever_hdf5_comes(_serve_trz)
_whenever_hdf5_comes(_serve_xor)
_whenever_xarray_comes()
