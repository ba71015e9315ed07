"""h5py of the running Python. `--plugins` registers those of hdf5plugin and of Tailrace first."""

import os
import sys

if "--plugins" in sys.argv:
    sys.argv.remove("--plugins")
    import hdf5plugin
else:
    hdf5plugin = None
import h5py

import dataset_lines


def walk(path):
    with h5py.File(path, "r") as file:
        yield "/", None, lambda: file.attrs
        yield from inside(file, "")


def inside(group, prefix):
    for name in group:
        item = group[name]
        if isinstance(item, h5py.Group):
            yield from inside(item, f"{prefix}{name}/")
        elif isinstance(item, h5py.Dataset):
            yield (prefix + name, lambda item=item: values_of(item), lambda item=item: item.attrs)


def values_of(dataset):
    if dataset.shape is None:
        return []
    if h5py.check_string_dtype(dataset.dtype):
        return dataset.asstr()[()] if dataset.dtype.kind == "O" else dataset[()]
    return dataset[()]


version = f"{h5py.__version__}, HDF5 {h5py.version.hdf5_version}"
if hdf5plugin:
    h5py.h5pl.append(os.environ["TAILRACE_PLUGIN_FOLDER"].encode())
    version += f", hdf5plugin {hdf5plugin.version}"
dataset_lines.read_files(version, walk)
