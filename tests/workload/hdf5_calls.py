"""The part of h5py that performer.py needs, by ctypes on the HDF5 that the process has loaded.

Each h5py is built for one HDF5. This module uses the preloaded HDF5, with or without the library
that intercepts its calls. Constants are those of HDF5's headers.
"""

import ctypes
import os

import numpy as np

_NAMES = {"i1": "SCHAR", "u1": "UCHAR", "i2": "SHORT", "u2": "USHORT", "i4": "INT", "u4": "UINT",
          "i8": "LLONG", "u8": "ULLONG", "f4": "FLOAT", "f8": "DOUBLE"}
_calls = ctypes.CDLL(None)


def call(name, *words):
    """Call a function that returns an id, a size or a status; negative values are failures."""
    function = getattr(_calls, name)
    function.restype = ctypes.c_int64 if name in _OF_IDS else ctypes.c_int
    result = function(*[ctypes.c_int64(word) if isinstance(word, int) else word for word in words])
    if result < 0:
        raise OSError(f"{name} fails")
    return result


_OF_IDS = ("H5Fcreate", "H5Fopen", "H5Dcreate2", "H5Dopen2", "H5Acreate2", "H5Aopen", "H5Oopen",
           "H5Pcreate", "H5Screate", "H5Screate_simple", "H5Dget_space", "H5Dget_type", "H5Tcopy")


def constant(name):
    return ctypes.c_int64.in_dll(_calls, name).value


def sizes(values):
    return (ctypes.c_uint64 * len(values))(*[int(value) for value in values])


def type_of(dtype):
    return constant(f"H5T_NATIVE_{_NAMES[np.dtype(dtype).str[1:]]}_g")


def space_of(shape, limits=None):
    if not shape:
        return call("H5Screate", ctypes.c_int(0))
    return call("H5Screate_simple", ctypes.c_int(len(shape)), sizes(shape),
                sizes(limits) if limits else None)


class Attributes:
    """Attributes of an object, given by its path."""

    def __init__(self, file, path):
        self._file, self._path = file, path.encode()

    def _with_object(self, work):
        there = call("H5Oopen", self._file.id, self._path, 0)
        try:
            work(there)
        finally:
            call("H5Oclose", there)

    def __setitem__(self, name, value):
        def write(there):
            if call("H5Aexists", there, name.encode()):
                call("H5Adelete", there, name.encode())
            if isinstance(value, str):
                raw = value.encode()
                kind, space = call("H5Tcopy", constant("H5T_C_S1_g")), space_of(())
                call("H5Tset_size", kind, ctypes.c_size_t(len(raw) + 1))
                call("H5Tset_cset", kind, ctypes.c_int(1))
                data = raw
            else:
                kind, space = call("H5Tcopy", type_of(value.dtype)), space_of(value.shape)
                data = value.ctypes
            made = call("H5Acreate2", there, name.encode(), kind, space, 0, 0)
            call("H5Awrite", made, kind, data)
            call("H5Aclose", made)
            call("H5Sclose", space)
            call("H5Tclose", kind)
        self._with_object(write)

    def __delitem__(self, name):
        self._with_object(lambda there: call("H5Adelete", there, name.encode()))


class Dataset:
    """A dataset, open until its file is closed."""

    def __init__(self, file, path, dtype):
        self.id, self.dtype = call("H5Dopen2", file.id, path.encode(), 0), np.dtype(dtype)
        self.attrs = Attributes(file, path)

    def resize(self, shape):
        call("H5Dset_extent", self.id, sizes(shape))

    @property
    def shape(self):
        space = call("H5Dget_space", self.id)
        n = call("H5Sget_simple_extent_ndims", space)
        shape = (ctypes.c_uint64 * n)()
        if n:
            call("H5Sget_simple_extent_dims", space, shape, None)
        call("H5Sclose", space)
        return tuple(shape)

    def _transfer(self, name, words, values, together=False):
        """words: slices with steps, () for the complete dataset, or None for nothing."""
        there, here = call("H5Dget_space", self.id), space_of(values.shape)
        how = 0
        if together:
            how = call("H5Pcreate", constant("H5P_CLS_DATASET_XFER_ID_g"))
            call("H5Pset_dxpl_mpio", how, ctypes.c_int(1))
        if words is None:
            call("H5Sselect_none", there)
            call("H5Sselect_none", here)
        elif words:
            call("H5Sselect_hyperslab", there, ctypes.c_int(0), sizes([w.start for w in words]),
                 sizes([w.step or 1 for w in words]), sizes(values.shape), None)
        call(name, self.id, type_of(values.dtype), here, there, how, values.ctypes)
        call("H5Sclose", there)
        call("H5Sclose", here)
        if how:
            call("H5Pclose", how)

    def write(self, words, values, together):
        self._transfer("H5Dwrite", words, np.ascontiguousarray(values), together)

    def __setitem__(self, words, values):
        self.write(words, values, False)

    def __getitem__(self, words):
        shape = self.shape
        lengths = [len(range(*w.indices(n))) for w, n in zip(words, shape)] if words else shape
        values = np.empty(lengths, self.dtype)
        if values.size:
            self._transfer("H5Dread", words, values)
        return values


class File:
    """A file that all ranks of a communicator open by MPI-IO."""

    def __init__(self, path, mode, driver, comm):
        from mpi4py import MPI  # noqa: PLC0415
        assert driver == "mpio"
        call("H5open")
        handle = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == 8 else ctypes.c_int
        access = call("H5Pcreate", constant("H5P_CLS_FILE_ACCESS_ID_g"))
        call("H5Pset_fapl_mpio", access, handle.from_address(MPI._addressof(comm)),
             handle.from_address(MPI._addressof(MPI.INFO_NULL)))
        exists = comm.bcast(os.path.exists(path) if comm.rank == 0 else None)
        if mode == "a" and exists:
            self.id = call("H5Fopen", path.encode(), ctypes.c_uint(1), access)
        else:
            flag = {"w": 2, "a": 4, "x": 4}[mode]  # H5F_ACC_TRUNC, H5F_ACC_EXCL
            self.id = call("H5Fcreate", path.encode(), ctypes.c_uint(flag), 0, access)
        call("H5Pclose", access)
        self.attrs, self._datasets = Attributes(self, "/"), {}
        self.types = {}

    def create_dataset(self, name, shape, dtype, fillvalue, maxshape=None, chunks=None,
                       compression=None, compression_opts=4, shuffle=False, fletcher32=False):
        made = call("H5Pcreate", constant("H5P_CLS_DATASET_CREATE_ID_g"))
        links = call("H5Pcreate", constant("H5P_CLS_LINK_CREATE_ID_g"))
        call("H5Pset_create_intermediate_group", links, ctypes.c_uint(1))
        call("H5Pset_fill_value", made, type_of(dtype), np.array(fillvalue, dtype).ctypes)
        if chunks:
            call("H5Pset_chunk", made, ctypes.c_int(len(chunks)), sizes(chunks))
        if shuffle:
            call("H5Pset_shuffle", made)
        if compression:
            call("H5Pset_deflate", made, ctypes.c_uint(compression_opts))
        if fletcher32:
            call("H5Pset_fletcher32", made)
        unlimited = 2**64 - 1
        limits = [unlimited if n is None else n for n in maxshape] if maxshape else None
        space = space_of(shape, limits)
        dataset = call("H5Dcreate2", self.id, name.encode(), type_of(dtype), space, links, made, 0)
        call("H5Dclose", dataset)
        for plist in (made, links):
            call("H5Pclose", plist)
        call("H5Sclose", space)
        self.types[name] = dtype

    def __getitem__(self, name):
        if name not in self._datasets:
            self._datasets[name] = Dataset(self, name, self.types[name])
        return self._datasets[name]

    def __bool__(self):
        return bool(self.id)

    def flush(self):
        call("H5Fflush", self.id, ctypes.c_int(0))

    def close(self):
        number, self.id = self.id, 0
        for dataset in self._datasets.values():
            call("H5Dclose", dataset.id)
        call("H5Fclose", number)
