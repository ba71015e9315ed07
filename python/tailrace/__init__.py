"""Error-bounded compression at memory speed: the codec trz for NumPy arrays and HDF5 files.

Importing this package registers the HDF5 filter with h5py, if h5py is installed: files that were
written with trz can then be read, and written by

    file.create_dataset("u", data=u, **tailrace.Trz(abs=1e-3))

For other programs (h5dump, netCDF4, ParaView) set HDF5_PLUGIN_PATH to tailrace.PLUGIN_PATH before
they start. Arrays in memory go through encode() and decode():

>>> import numpy as np, tailrace
>>> u = np.sin(np.linspace(0, 9, 4096, dtype="f4")).reshape(64, 64)
>>> encoded = tailrace.encode(u, abs=1e-3)
>>> decoded = tailrace.decode(encoded, shape=u.shape)
>>> bool(np.abs(u - decoded).max() <= 1e-3)
True
"""

from ._arrays import ChunkSummary, decode, describe, encode, train_book
from ._native import FILTER_ID, PLUGIN_PATH, TrzError, __version__
from ._settings import Trz, cd_values, register

__all__ = [
    "FILTER_ID", "PLUGIN_PATH", "ChunkSummary", "Trz", "TrzError", "__version__", "cd_values",
    "decode", "describe", "encode", "register", "train_book",
]

register()
