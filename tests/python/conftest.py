"""For all tests: the order of imports that plug-ins ask for.

hdf5plugin binds its plug-ins to the HDF5 that the process has when it is imported. That must
be h5py's: netCDF4 brings another one, with which h5py cannot create datasets of these plug-ins.
"""

import h5py  # noqa: F401
import hdf5plugin  # noqa: F401
