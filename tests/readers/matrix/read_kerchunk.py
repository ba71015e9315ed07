"""kerchunk's references to a file, read by zarr, without h5py's own reading of values."""

import re
import warnings
from importlib.metadata import version

import kerchunk.hdf
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.reference import ReferenceFileSystem

import dataset_lines


def references_of(path):
    """The references, and the reasons why kerchunk omitted datasets, by name."""
    with open(path, "rb") as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        references = kerchunk.hdf.SingleHdf5ToZarr(file, path, inline_threshold=0).translate()
    left_out = {}
    for each in caught:
        text = str(each.message)
        if "quashed" in text:
            found = re.search(r"/(\S+) (uses|has) .*", text)
            left_out[found[1] if found else ""] = found[0] if found else text.split("\n")[1]
    return references, left_out


def fail(text):
    raise NotImplementedError(text)


def walk(path):
    references, left_out = references_of(path)
    for name, why in left_out.items():
        yield name, lambda why=why: fail(why), None
    local = AsyncFileSystemWrapper(LocalFileSystem(), asynchronous=True)
    system = ReferenceFileSystem(references, fs=local, asynchronous=True)
    root = zarr.open_group(zarr.storage.FsspecStore(system), mode="r", zarr_format=2)
    yield "/", None, lambda: root.attrs
    for key in sorted(references["refs"]):
        if key.endswith("/.zarray"):
            item = root[key.removesuffix("/.zarray")]
            yield (key.removesuffix("/.zarray"), lambda item=item: item[...],
                   lambda item=item: item.attrs)


dataset_lines.read_files(f"{version('kerchunk')}, zarr {zarr.__version__}", walk)
