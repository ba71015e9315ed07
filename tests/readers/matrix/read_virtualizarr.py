"""VirtualiZarr's parser of HDF5, read by zarr through its manifest store."""

import pathlib
import warnings
from importlib.metadata import version

import h5py
import zarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import HDFParser

import dataset_lines

warnings.filterwarnings("ignore")


def numbers_of(path):
    """(group, name, the group's other members) of each numeric dataset, and of the root."""
    with h5py.File(path, "r") as file:
        found = [("", "", set(file))]

        def look(name, item):
            if isinstance(item, h5py.Dataset) and item.dtype.kind not in "SO":
                group, _, own = name.rpartition("/")
                found.append((group, own, set(item.parent) - {own}))

        file.visititems(look)
    return found


def opened(path, group, left_out):
    """A group of the file. A dataset that the parser refuses would hide all the others."""
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    parser = HDFParser(group=group or None, drop_variables=sorted(left_out))
    store = parser(url=pathlib.Path(path).resolve().as_uri(), registry=registry)
    return zarr.open_group(store, mode="r", zarr_format=3)


def walk(path):
    for group, name, others in numbers_of(path):
        if not name:
            yield "/", None, lambda others=others: opened(path, "", others).attrs
            continue

        def item(group=group, name=name, others=others):
            return opened(path, group, others)[name]
        yield (f"{group}/{name}".strip("/"), lambda item=item: item()[...],
               lambda item=item: item().attrs)


dataset_lines.read_files(f"{version('virtualizarr')}, zarr {zarr.__version__}", walk)
