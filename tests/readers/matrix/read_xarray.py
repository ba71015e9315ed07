"""xarray with one of its engines, which is the first argument, with unscaled stored values."""

import importlib
import sys

import xarray

import dataset_lines

engine = sys.argv.pop(1)


def walk(path):
    more = {"phony_dims": "access"} if engine == "h5netcdf" else {}
    groups = xarray.open_groups(path, engine=engine, mask_and_scale=False, decode_times=False,
                                decode_cf=False, **more)
    for place, dataset in groups.items():
        prefix = place.strip("/") + "/" if place != "/" else ""
        if not prefix:
            yield "/", None, lambda dataset=dataset: dataset.attrs
        for name, variable in dataset.variables.items():
            yield (prefix + str(name), lambda variable=variable: variable.values,
                   lambda variable=variable: variable.attrs)
        dataset.close()


library = importlib.import_module({"netcdf4": "netCDF4"}.get(engine, engine))
dataset_lines.read_files(f"{xarray.__version__}, {engine} {library.__version__}", walk)
