"""Python libraries that read netCDF-4, called in a separate process.

HDF5_PLUGIN_PATH must be set before netCDF4's HDF5 is loaded. It must not be set where h5py and
hdf5plugin find plug-ins themselves, as in the tests' process. Every function returns plain NumPy
arrays by path, as stored: no masks, no scales.
"""

import numpy as np


def netcdf4(path):
    import netCDF4
    found = {}

    def walk(group, place):
        for name, variable in group.variables.items():
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            found[f"{place}{name}"] = np.asarray(variable[...])
        for name, child in group.groups.items():
            walk(child, f"{place}{name}/")

    with netCDF4.Dataset(path) as file:
        walk(file, "/")
    return found


def xarray(path, engine, groups):
    import xarray
    more = {"phony_dims": "access"} if engine == "h5netcdf" else {}
    found = {}
    for group in groups:
        with xarray.open_dataset(path, engine=engine, group=group if group != "/" else None,
                                 mask_and_scale=False, decode_times=False, decode_cf=False,
                                 **more) as file:
            for name, variable in file.variables.items():
                found[f"{group.rstrip('/')}/{name}"] = np.asarray(variable.values)
    return found


def append_record(path, name):
    """Append a record of ones, like a program that continues the file; return its index."""
    import netCDF4
    with netCDF4.Dataset(path, "a") as file:
        variable = file[name]
        variable.set_auto_maskandscale(False)
        at = len(file[name])
        variable[at] = np.ones(variable.shape[1:], variable.dtype)
        file.history = "one more record"
        variable.remark = np.int32(7)
    return at
