"""Every kind of file that Tailrace writes, read by every known reader of HDF5 and netCDF-4.

A kind is a function that makes a file in a folder. h5py reads the reference values, which other
tests check. ncdump, nccopy, ncks, h5dump, netCDF4-python and xarray's three engines must return the
same numbers, bit by bit. netCDF4-python then appends a record if a dimension can grow, and Tailrace
reads the file again.
"""

import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import pytest

import application_runs
import python_package
import stock_readers
import test_examples
from cli_tools import smooth, tailrace

pytestmark = pytest.mark.sample(2)

package = python_package.load()
pytest.importorskip("h5netcdf")
xarray = pytest.importorskip("xarray")

SHAPE = (6, 10, 12)
VALUES = smooth(SHAPE)
BOUND = ["--bound", "abs=1e-3"]
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
HDF5_FILTERS = {1, 2, 3}  # deflate, shuffle, fletcher32
LOSSLESS = HDF5_FILTERS | {482, 32015}  # xor, zstd
DUMPED = 4000  # number of values of a variable that ncdump and h5dump print
#: Kinds with fields that grow from step to step, whose chunk index needs HDF5 1.10.
GROWING = {"Writer time_series", "Writer md async", "Writer md in_situ"}
KINDS = {}


def kind(maker):
    KINDS[maker.__name__] = maker
    return maker


# --- files that Tailrace writes
# -----------------------------------------------------------------------

def netcdf_input(folder, form):
    path = folder / "in.nc"
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, length in zip(("time", "y", "x"), (None, *SHAPE[1:])):
            file.createDimension(name, length)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(6) * 0.5
        temp = file.createVariable("temp", "f4", ("time", "y", "x"), fill_value=-999)
        temp[:], temp.units = VALUES, "K"
        file.createVariable("count", "i2", ("x",))[:] = np.arange(12)
        file.createVariable("label", "S1", ("y",))[:] = np.frombuffer(b"abcdefghij", "S1")
        if form == "NETCDF4":
            group = file.createGroup("more")
            group.createDimension("x", 3)
            group.createVariable("x", "u8", ("x",))[:] = [1, 2, 2**63]
            group.createVariable("words", str, ("x",))[:] = np.array(["a", "", "öl"], object)
    return path


def hdf5_input(folder):
    path = folder / "in.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("temp", data=VALUES, maxshape=(None, *SHAPE[1:]), chunks=(2, 10, 12))
        file.create_dataset("group/big", data=VALUES.astype(">f8"))
        file["group/count"] = np.arange(12, dtype="u2")
        file.create_dataset("time", data=np.arange(6) * 0.5, maxshape=(None,), chunks=(6,))
        file["scalar"] = np.int64(-3)
        file["temp"].attrs["units"] = "K"
    return path


def repacked(source, folder, *words, ranks=1):
    target = folder / ("out.nc" if "--netcdf" in words or source.suffix == ".nc" else "out.h5")
    tailrace("repack", source, "-o", target, *words, ranks=ranks)
    return target


for form in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4_CLASSIC"):
    KINDS[f"repack {form}"] = lambda folder, form=form: repacked(
        netcdf_input(folder, form), folder, "--codec", "portable", *BOUND)
KINDS["repack hdf5"] = lambda folder: repacked(hdf5_input(folder), folder)
KINDS["repack --netcdf"] = lambda folder: repacked(hdf5_input(folder), folder, "--netcdf")
for layout in ("claimed", "dense", "sparse", "hybrid:3", "predictive", "arena"):
    KINDS[f"layout {layout}"] = lambda folder, layout=layout: repacked(
        hdf5_input(folder), folder, "--netcdf", "--dims", "/temp=time,lat,lon", "--layout", layout,
        "--codec", "trz", *BOUND, "--chunk", "2x10x12", ranks=2)
KINDS["layout contiguous"] = lambda folder: repacked(
    hdf5_input(folder), folder, "--netcdf", "--layout", "contiguous", "--codec", "none",
    "--exclude", "/t*")
for codec in ("none", "deflate", "portable", "trz", "xor", "zstd", "zfp", "sz3", "auto"):
    words = ["--codec", codec, *(BOUND if codec in ("portable", "trz", "zfp", "sz3", "auto") else
                                 [])]
    KINDS[f"codec {codec}"] = lambda folder, words=words: repacked(
        hdf5_input(folder), folder, "--netcdf", "--dims", "/temp=time,lat,lon", *words)


@kind
def repack_of_numpy(folder):
    np.save(folder / "temp.npy", VALUES)
    return repacked(folder / "temp.npy", folder, "--netcdf", "--dims", "*=t,y,x")


@kind
def concat(folder):
    for i in range(2):
        with h5py.File(folder / f"in_{i}.h5", "w") as file:
            for name, data in (("g/a", VALUES + i), ("g/n", np.arange(6, dtype="i8") + i)):
                file.create_dataset(name, data=data, maxshape=(None, *data.shape[1:]),
                                    chunks=(4, *data.shape[1:]), compression="gzip")
    tailrace("concat", folder / "in_0.h5", folder / "in_1.h5", "-o", folder / "out.h5")
    tailrace("concat", "-a", folder / "in_1.h5", "-o", folder / "out.h5")
    return folder / "out.h5"


@kind
def export(folder):
    small = repacked(netcdf_input(folder, "NETCDF4"), folder, "--codec", "trz", *BOUND)
    tailrace("export", small, "-o", folder / "plain.h5")
    return folder / "plain.h5"


def example(name):
    def make(folder):
        test_examples.run(name, "alone", folder / "out.h5")
        return folder / "out.h5"
    KINDS[f"Writer {name}"] = make


example("write_field")   # C, a group per step
example("write_volume")  # C++
example("time_series")   # C, over time, closed and opened again before each step
example("particles")


def application(output, *more):
    def make(folder):
        application_runs.run("md", folder, "--cells", 4, "--steps", 6, "--every", 2, *more,
                             ranks=2, output=output)
        return folder / f"{output}.h5"
    KINDS[f"Writer md {' '.join((output, *more))}"] = make


application("async")
application("in_situ")
application("in_situ", "--over-time", "off")


@kind
def array_file_by_pnetcdf(folder):
    application_runs.application("md-pnetcdf")
    application_runs.run("md-pnetcdf", folder, "--cells", 4, "--steps", 6, "--every", 2, ranks=2,
                         output="pnetcdf", variables=application_runs.preload("codec=trz"))
    return folder / "pnetcdf.h5"


def python_file(folder):
    with package.open(folder / "out.nc", "w") as file:
        file.attrs["title"] = "Python's"
        file.create_dimension("time")
        file.create_variable("temp", ("time", "y", "x"), data=VALUES, abs=1e-3, codec="trz",
                             fill_value=-999.0, attrs={"units": "K"}, chunks=(2, 10, 12))
        group = file.create_group("more")
        group.create_variable("words", ("x",), str).write(np.array(list("abcdefghijkl"), object))
        group.create_variable("n", ("x",), data=np.arange(12, dtype="u4"), codec="xor")
    return folder / "out.nc"


@kind
def python_open(folder):
    return python_file(folder)


@kind
def python_append(folder):
    path = python_file(folder)
    with package.open(path, "a") as file:
        file["temp"][6:8] = VALUES[:2]
        file.create_variable("late", ("y", "x"), data=VALUES[0], codec="portable", rel=1e-4)
    return path


@kind
def python_write_dataset(folder):
    dataset = xarray.Dataset({"temp": (("time", "y", "x"), VALUES)},
                             {"time": np.arange(6) * 2.0, "x": np.arange(12)})
    package.write_dataset(dataset, folder / "out.nc", encoding={"temp": {"rel": 1e-4}},
                          unlimited_dims=["time"])
    return folder / "out.nc"


# --- readers of these files
# ---------------------------------------------------------------------------

def plugin_folders():
    built = application_runs.build_folder() / "lib" / "hdf5" / "plugin"
    return os.pathsep.join([str(built), hdf5plugin.PLUGINS_PATH])


@pytest.fixture(scope="module")
def libraries():
    """Call functions of stock_readers in a process that starts with HDF5_PLUGIN_PATH."""
    before = dict(os.environ)
    os.environ.update(python_package.package_environment(), HDF5_PLUGIN_PATH=plugin_folders())
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(os.getpid)
            os.environ.clear()
            os.environ.update(before)
            yield lambda function, *arguments: pool.apply_async(
                function, arguments).get(timeout=600)
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(*words):
    program = shutil.which(words[0])
    if program is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([program, *map(str, words[1:])], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "HDF5_PLUGIN_PATH": plugin_folders()})
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}{done.stderr}"
    return done.stdout


def by_h5py(path):
    """Return numbers by path, paths that grow along their first dimension only, and all filters."""
    found, grow, filters = {}, [], set()

    def look(name, item):
        if (isinstance(item, h5py.Dataset) and item.dtype.kind in "iuf"
                and not item.attrs.get("NAME", b"").startswith(NO_VARIABLE)):
            found["/" + name] = item[()]
            pipeline = item.id.get_create_plist()
            filters.update(pipeline.get_filter(i)[0] for i in range(pipeline.get_nfilters()))
            if item.maxshape and item.maxshape[0] is None and None not in item.maxshape[1:]:
                grow.append("/" + name)

    with application_runs.opened(path) as file:
        file.visititems(look)
    assert found
    return found, grow, filters


def same(found, expected, reader):
    for name, values in expected.items():
        assert name in found, f"{reader} finds no {name}, but {sorted(found)}"
        # Values are compared as numbers, because readers may choose the byte order.
        np.testing.assert_array_equal(found[name], values, err_msg=f"{reader}: {name}")


def ncdump_values(path, name):
    """Return the values of a variable; ncdump prints _ for the fill value."""
    text = run("ncdump", "-p", "9,17", "-v", name if name.count("/") > 1 else name[1:], path)
    data = text[text.index("data:"):]
    found = re.search(rf"^\s*{re.escape(name.rsplit('/', 1)[1])} =(.*?);", data, re.M | re.S)
    return [word.strip() for word in found[1].replace("\n", " ").split(",")]


def check_programs(path, expected, filters, folder):
    filled = sorted((name for name in expected if expected[name].size), key=lambda name:
                    expected[name].size)
    small = [name for name in filled[1:3] if expected[name].size <= DUMPED] or filled[:1]
    header = run("ncdump", "-h", path)
    for name in expected:
        assert re.search(rf"\b{re.escape(name.rsplit('/', 1)[1])}\b", header), name
    for name in small:
        values = expected[name].ravel()
        words = ncdump_values(path, name)
        numbers = [value if word == "_" else values.dtype.type(word)
                   for word, value in zip(words, values)]
        assert len(words) == values.size
        np.testing.assert_array_equal(np.array(numbers, values.dtype), values, err_msg=name)
        dumped = folder / "values.bin"
        run("h5dump", "-d", name, "-b", "NATIVE", "-o", dumped, path)
        np.testing.assert_array_equal(np.fromfile(dumped, values.dtype.newbyteorder("=")), values)
    run("h5dump", "-H", "-p", path)
    # Lossy filters are omitted, because a copy encodes again, and NCO confuses the parameters of
    # filters that it does not know (docs/publish.md).
    run("nccopy", *(["-F", "none"] if filters - LOSSLESS else []), "-k", "nc4", path,
        folder / "copy_nc4.nc")
    run("ncks", "-O", *(["--cmp=none"] if filters - HDF5_FILTERS else []), path,
        folder / "copy_ncks.nc")


def check_forms(path, expected, filters, name):
    """Files that are complete when they are closed use forms that readers other than the HDF5
    library support."""
    says = json.loads(tailrace("info", path, "--json", "-").stdout)
    assert says["opens_in"] == ("hdf5-1.10" if name in GROWING else "everyone"), says["new_indexes"]
    assert says["masked_chunks"] == 0 or filters - LOSSLESS
    need = h5py.File(path).attrs.get("tailrace_readers_need", "")
    assert bool(need) == bool(filters - HDF5_FILTERS), need
    if name in GROWING or filters - HDF5_FILTERS:
        return
    pyfive = pytest.importorskip("pyfive")
    with pyfive.File(str(path)) as file:
        for entry, values in expected.items():
            if np.asarray(values).dtype.kind in "fiu":
                np.testing.assert_array_equal(np.asarray(file[entry][...]), values, entry)


@pytest.mark.parametrize("name", KINDS)
def test_kind(name, tmp_path, libraries):
    path = KINDS[name](tmp_path)
    expected, grow, filters = by_h5py(path)
    check_forms(path, expected, filters, name)
    groups = sorted({entry.rsplit("/", 1)[0] or "/" for entry in expected})
    check_programs(path, expected, filters, tmp_path)
    for written in (path, tmp_path / "copy_nc4.nc", tmp_path / "copy_ncks.nc"):
        same(libraries(stock_readers.netcdf4, str(written)), expected, f"netCDF4 {written.name}")
    for engine in ("netcdf4", "h5netcdf", "tailrace"):
        same(libraries(stock_readers.xarray, str(path), engine, groups), expected, engine)
    if grow:
        at = libraries(stock_readers.append_record, str(path), grow[0])
        with package.open(path) as file:
            # Lossy plug-ins encode the record, and the other values of its chunk again.
            slack = 1e-2 if filters - LOSSLESS else 0
            np.testing.assert_allclose(np.asarray(file[grow[0]][at], "f8"), 1, 0, slack)
            np.testing.assert_allclose(file[grow[0]][:at], expected[grow[0]], 0, slack)
            assert file[grow[0]].attrs["remark"] == 7
        run("ncdump", "-h", path)


def test_the_table_has_every_codec_and_layout():
    help_text = tailrace("repack", "--help-all").stdout
    layouts = re.search(r"--layout NAME.*?\n  --", help_text, re.S)[0]
    for layout in re.findall(r"^ {28}(\w+):", layouts, re.M):
        assert f"layout {layout}" in KINDS
    codecs = help_text[help_text.index("Built in:"):help_text.index("Plug-ins of HDF5")]
    for codec in re.findall(r"^ {30}(\w+):", codecs, re.M):
        assert f"codec {codec}" in KINDS
