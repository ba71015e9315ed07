#!/usr/bin/env python3
"""Writes the seeds of the fuzzer of input files: small files of every supported kind.

  make_input_corpus.py TAILRACE FOLDER      (FOLDER: tests/fuzz/corpus-input-file)

The seeds are stored in the repository, so this only runs after a kind is added."""

import pathlib
import subprocess
import sys

import h5py
import netCDF4
import numpy as np

VALUES = np.arange(48, dtype="f4").reshape(6, 8)
PAIR = np.dtype([("a", "<i4"), ("b", "<f4", (2,))])


def hdf5(name, fill, libver="earliest", **more):
    with h5py.File(FOLDER / f"{name}.h5", "w", libver=libver, **more) as file:
        fill(file)


def low_level(file, name, change, values=VALUES):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    change(creation)
    space = h5py.h5s.create_simple(values.shape)
    kind = h5py.h5t.py_create(values.dtype, logical=True)
    h5py.h5d.create(file.id, name.encode(), kind, space, creation).write(
        h5py.h5s.ALL, h5py.h5s.ALL, values)


def groups(file):
    file["a/b/x"] = VALUES[0]
    file["a/again"] = file["a/b/x"]
    file["a/b/up"] = file["a"]
    file["soft"] = h5py.SoftLink("/a/b/x")
    file["there"] = h5py.ExternalLink("there.h5", "/x")
    file["a"].attrs["leads"] = np.array([file["a/b/x"].ref], h5py.ref_dtype)


def attributes(file):
    file["x"] = VALUES[0]
    for name, value in {"_FillValue": VALUES[0, 1], "units": "K", "row": np.zeros(2, PAIR),
                        "words": np.array(["a", "b"], h5py.string_dtype()),
                        "none": h5py.Empty("f4")}.items():
        file["x"].attrs[name] = value


def kinds(file):
    file["words"] = np.array(["one", "two"], h5py.string_dtype())
    file["names"] = np.array([b"one", b"two"])
    file["pairs"] = np.zeros(2, PAIR)
    file["type"] = PAIR
    file["typed"] = np.array([1, 0], h5py.enum_dtype({"off": 0, "on": 1}))
    file["single"] = np.float64(1.5)
    lists = file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
    lists[0] = [1, 2, 3]


def scales(file):
    file["u"] = VALUES
    for d, name in enumerate("yx"):
        file[name] = np.arange(VALUES.shape[d], dtype="f8")
        file[name].make_scale(name)
        file["u"].dims[d].attach_scale(file[name])


def elsewhere(file):
    file.create_dataset("outside", (4,), "f4", external=[("raw.bin", 0, 16)])
    layout = h5py.VirtualLayout((8,), "f4")
    layout[:] = h5py.VirtualSource("there.h5", "x", shape=(8,))
    file.create_virtual_dataset("view", layout)
    file["x"] = VALUES[0]


def hdf5_seeds():
    packed = dict(chunks=(4, 4), compression="gzip", shuffle=True, fletcher32=True)
    for version, libver in ("old", "earliest"), ("new", ("v110", "v110")):
        def one(name, libver=libver, version=version, **more):
            hdf5(f"{name}_{version}", lambda file: file.create_dataset("u", data=VALUES, **more),
                 libver)
        one("contiguous")
        one("big_endian", dtype=">f8")
        one("chunked", chunks=(4, 4))
        one("filtered", **packed)
        one("lzf", chunks=(4, 4), compression="lzf")
        one("growing", maxshape=(None, 8), **packed)
        one("growing_twice", maxshape=(None, None), **packed)
        one("one_chunk", chunks=(6, 8), compression="gzip")
        one("scale_offset", chunks=(6, 8), scaleoffset=2)
        for fill in groups, attributes, kinds, scales, elsewhere:
            hdf5(f"{fill.__name__}_{version}", fill, libver)
    hdf5("compact", lambda file: low_level(
        file, "u", lambda c: c.set_layout(h5py.h5d.COMPACT), np.arange(3, dtype="i2")))

    def early(creation):
        creation.set_chunk((4, 4))
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    hdf5("implicit_index", lambda file: low_level(file, "u", early), ("v110", "v110"))
    hdf5("user_block", lambda file: file.create_dataset("u", data=VALUES), userblock_size=512)
    hdf5("nothing_written", lambda file: file.create_dataset("u", (1 << 20,), "f4", chunks=(64,)))


def netcdf_seeds():
    for name, form in (("classic_1", "NETCDF3_CLASSIC"), ("classic_2", "NETCDF3_64BIT_OFFSET"),
                       ("classic_5", "NETCDF3_64BIT_DATA"), ("netcdf4", "NETCDF4_CLASSIC")):
        with netCDF4.Dataset(FOLDER / f"{name}.nc", "w", format=form) as file:
            for dimension, length in ("time", None), ("x", 4), ("letters", 5):
                file.createDimension(dimension, length)
            file.title = "seed"
            file.createVariable("x", "f8", ("x",))[:] = np.arange(4)
            record = file.createVariable("u", "f4", ("time", "x"), fill_value=-1)
            record[:] = VALUES[:3, :4]
            record.coordinates = "x"
            file.createVariable("n", "i2", ("time",))[:] = np.arange(3)
            file.createVariable("name", "S1", ("letters",))[:] = np.array(list("hello"), "S1")


def npy_seeds():
    for kind in "<f4", ">f8", "|u1", ">u2", "<i8", "<f2":
        np.save(FOLDER / f"{kind[1:]}.npy", np.arange(6).reshape(2, 3).astype(kind))
    np.save(FOLDER / "fortran.npy", np.asfortranarray(VALUES))
    np.save(FOLDER / "single.npy", np.float64(1.5))
    np.save(FOLDER / "nothing.npy", np.zeros((0, 3), "f4"))


def seeds_of_ours(program):
    source, second = FOLDER / "filtered_old.h5", FOLDER / "filtered_new.h5"
    for name, words in {"trz": "--codec trz --bound abs=0.01", "trz_exact": "--codec trz",
                        "xor": "--codec xor", "deflate": "--codec deflate"}.items():
        subprocess.run([program, "repack", source, "-o", FOLDER / f"{name}.h5", "--chunk", "4x4",
                        "-q", *words.split()], check=True)
    subprocess.run([program, "concat", source, second, "-o", FOLDER / "concat.h5", "-q", "--dedup"],
                   check=True)


FOLDER = pathlib.Path(sys.argv[2])
FOLDER.mkdir(parents=True, exist_ok=True)
hdf5_seeds()
netcdf_seeds()
npy_seeds()
seeds_of_ours(sys.argv[1])
