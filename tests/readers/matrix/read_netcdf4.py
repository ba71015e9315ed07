"""netCDF4-python, with unscaled stored values."""

import netCDF4

import dataset_lines


def walk(path):
    with netCDF4.Dataset(path) as file:
        yield "/", None, lambda: file.__dict__
        yield from inside(file, "")


def inside(group, prefix):
    for name, variable in group.variables.items():
        variable.set_auto_maskandscale(False)
        variable.set_auto_chartostring(False)
        yield (prefix + name, lambda variable=variable: variable[...],
               lambda variable=variable: variable.__dict__)
    for name, child in group.groups.items():
        yield from inside(child, f"{prefix}{name}/")


dataset_lines.read_files(f"{netCDF4.__version__}, netCDF-C {netCDF4.__netcdf4libversion__}, "
                   f"HDF5 {netCDF4.__hdf5libversion__}", walk)
