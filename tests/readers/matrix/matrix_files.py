"""The files of the reader matrix: each of Tailrace's interfaces ("doors"), by codecs and forms.

A row is a door, a codec, a form, and a function that makes the file in a folder. All values are
multiples of 1/64 around 100, or small integers, so that sums are exact in any order.
"""

import os
import pathlib
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import h5py
import netCDF4
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build/bin/tailrace")).parents[1]
DEBIAN_PYTHON = "/usr/bin/python3"
BOUND = ["--bound", "abs=1e-3"]
CODECS = {"deflate": [], "portable": ["--codec", "portable", *BOUND],
          "zstd": ["--codec", "zstd"], "trz": ["--codec", "trz", *BOUND],
          "xor": ["--codec", "xor"]}
NEWER, OLDER = "compatibility=v110", "compatibility=everyone"
FORMS = {"default": [], "layout=front": ["--layout", "front"],
         "--publish=cloud": ["--publish=cloud"],
         "--publish=cmip7": ["--publish=cmip7"], "--publish=as-stored": ["--publish=as-stored"]}


@dataclass
class Row:
    door: str
    codec: str
    form: str
    file: str
    make: object


def run(*words, **environment):
    """Run a command to its end; a failure ends the matrix, because a row would be missing."""
    import hdf5plugin
    plugins = os.pathsep.join([str(BUILD / "lib/hdf5/plugin"), hdf5plugin.PLUGINS_PATH])
    environment = {**os.environ, "HDF5_PLUGIN_PATH": plugins, **environment}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env=environment, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}\n"
                           f"{done.stdout}{done.stderr}")


def tailrace(*words):
    run(BUILD / "bin/tailrace", *words)


def values(*shape, first=0):
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 + first * 5) % 4096 / 64 + 100).reshape(shape)


# --- inputs of Tailrace --------------------------------------------------------------------------

def write_netcdf(path, n_records=6, first=0, texts=True):
    with netCDF4.Dataset(path, "w") as file:
        file.title = "netCDF-4"
        for name, length in (("time", None), ("y", 20), ("x", 24), ("station", None)):
            file.createDimension(name, length)
        packed = {"zlib": True, "shuffle": True}
        file.createVariable("time", "f8", ("time",))[:] = (first + np.arange(n_records)) / 2
        for name, length in (("y", 20), ("x", 24)):
            file.createVariable(name, "f4", (name,))[:] = np.arange(length) / 4
        tas = file.createVariable("tas", "f4", ("time", "y", "x"), chunksizes=(2, 10, 24), **packed)
        tas[:] = values(n_records, 20, 24, first=first)
        tas.units = "K"
        for i in range(1, 13):
            tas.setncattr(f"a{i:02}", i / 4)
        count = file.createVariable("count", "i4", ("y", "x"), **packed)
        count[:] = (np.arange(480) * 3 - 100).reshape(20, 24)
        two = file.createVariable("two", "f4", ("time", "station"), chunksizes=(2, 4), **packed)
        two[:] = values(n_records, 9, first=first)
        file.createVariable("crs", "i4", ())[:] = 7
        file.createVariable("name", "S1", ("y",))[:] = np.frombuffer(b"abcdefghijklmnopqrst", "S1")
        group = file.createGroup("more").createGroup("deep")
        group.createDimension("n", 5)
        group.createVariable("number", "i2", ("n",))[:] = np.arange(5)
        if texts:
            group = file.createGroup("z_texts")
            group.createDimension("n", 5)
            group.createVariable("words", str, ("n",))[:] = np.array(list("vwxyz"), object)
    return path


def write_hdf5(path, n_records=12, first=0):
    packed = {"compression": "gzip", "shuffle": True}
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "HDF5"
        field = file.create_dataset("field", data=values(6, 20, 24).astype("f4"),
                                    chunks=(2, 10, 24), maxshape=(None, 20, 24), **packed)
        field.attrs["units"] = "K"
        for i in range(1, 13):
            field.attrs[f"a{i:02}"] = i / 4
        rows = values(n_records, 24, first=first).astype("f4")
        file.create_dataset("grow", data=rows, maxshape=(None, 24), chunks=(3, 24), **packed)
        file.create_dataset("grow2", data=rows.astype("f8"), maxshape=(None, None), chunks=(5, 6),
                            **packed)
        file.create_dataset("one", data=rows[0], maxshape=(None,), chunks=(24,), **packed)
        fixed = file.create_group("fixed")
        fixed.create_dataset("count", data=np.arange(1200, dtype="i4").reshape(40, 30),
                             chunks=(10, 30), **packed)
        fixed.create_dataset("large", data=values(100, 60, 12).astype("f4"), chunks=(25, 60, 12),
                             **packed)
        fixed["scalar"] = 2.5
        fixed["plain"] = np.arange(20.0)
        fixed["deep/wide"] = np.arange(12, dtype="i8") + 2**40
        file.create_dataset("z_texts/words", data=["a", "bc", "def"], dtype=h5py.string_dtype())
    return path


def write_rows(path, first):
    """An input of concat: every dataset has rows."""
    with h5py.File(path, "w") as file:
        for name, data in (("grow", values(12, 24, first=first).astype("f4")),
                           ("group/count", np.arange(12, dtype="i4") + first)):
            file.create_dataset(name, data=data, maxshape=(None, *data.shape[1:]),
                                chunks=(4, *data.shape[1:]), compression="gzip")
    return path


# --- rows -----------------------------------------------------------------------------------------

ROWS = []


def add(door, codec, form, file, make):
    ROWS.append(Row(door, codec, form, file, make))


def add_repack(kind, codec, form):
    def make(path):
        source = path.with_name(f"source.{kind}")
        if not source.exists():
            {"nc": write_netcdf, "h5": write_hdf5}[kind](source)
        tailrace("repack", source, "-o", path, *CODECS[codec], *FORMS[form])
    door = {"nc": "`repack`, netCDF-4", "h5": "`repack`, HDF5"}[kind]
    add(door, codec, form, f"repack_{codec}_{form.strip('-').replace('=', '_')}.{kind}", make)


add("none: by netCDF4-python", "deflate", "", "original.nc", write_netcdf)
add("none: by h5py", "deflate", "", "original.h5", write_hdf5)
for each in FORMS:
    add_repack("nc", "deflate", each)
for each in ("default", "layout=front", "--publish=cloud", "--publish=as-stored"):
    add_repack("h5", "deflate", each)
for codec in ("portable", "zstd", "trz", "xor"):
    add_repack("nc", codec, "default")
    add_repack("h5", codec, "default")
add_repack("nc", "portable", "layout=front")
add_repack("nc", "portable", "--publish=cmip7")
add_repack("nc", "trz", "layout=front")


def add_export(kind):
    def make(path):
        source = path.with_name(f"small_export.{kind}")
        {"nc": write_netcdf, "h5": write_hdf5}[kind](path.with_name(f"large_export.{kind}"))
        tailrace("repack", path.with_name(f"large_export.{kind}"), "-o", source, *CODECS["trz"])
        tailrace("export", source, "-o", path)
    add({"nc": "`export`, netCDF-4", "h5": "`export`, HDF5"}[kind], "none", "default",
        f"export_{kind}.{kind}", make)


add_export("nc")
add_export("h5")


def add_concat(kind, form, words=(), appended=False):
    name = "concat_" + ("append" if appended else form.strip("-").replace("=", "_"))

    def make(path):
        parts = [path.with_name(f"part{i}_{name}.{kind}") for i in range(3)]
        for i, part in enumerate(parts):
            write_netcdf(part, 4, 4 * i) if kind == "nc" else write_rows(part, i)
        tailrace("concat", "-o", path, *words, *parts[:2 if appended else 3])
        if appended:
            tailrace("concat", "-a", parts[2], "-o", path)
    door = {"nc": "`concat`, netCDF-4", "h5": "`concat`, HDF5"}[kind]
    add(door + (", then `-a`" if appended else ""), "deflate", form, f"{name}.{kind}", make)


add_concat("nc", "default")
add_concat("nc", "layout=front", ["--layout", "front"])
add_concat("nc", "default", appended=True)
add_concat("h5", "default")


def by_python(source):
    """Source code that runs with the package of this build, without pytest's helpers."""
    def make(path):
        library = BUILD / "lib"
        folders = os.pathsep.join([str(ROOT / "python"), str(library / "python")])
        run(sys.executable, "-c", PYTHON + textwrap.dedent(source), path, PYTHONPATH=folders,
            TAILRACE_ENGINE_DIR=str(library / "python"),
            TAILRACE_H5TRZ=str(library / "hdf5/plugin/libh5trz.so"), HDF5_PLUGIN_PATH="")
    return make


PYTHON = """
import sys, numpy as np, tailrace
path = sys.argv[1]
def values(*shape):
    return ((np.arange(np.prod(shape)) * 7) % 4096 / 64 + 100).reshape(shape)
def fill(file, **more):
    file.attrs["title"] = "Python"
    file.create_dimension("time")
    file.create_variable("time", ("time",), data=np.arange(6) / 2)
    many = {"units": "K", **{f"a{i:02}": i / 4 for i in range(1, 13)}}
    file.create_variable("tas", ("time", "y", "x"), data=values(6, 20, 24).astype("f4"),
                         chunks=(2, 10, 24), attrs=many, **more)
    group = file.create_group("more")
    group.create_variable("count", ("n",), data=np.arange(12, dtype="i4"))
    group = file.create_group("z_texts")
    group.create_dimension("n", 12)
    group.create_variable("words", ("n",), str).write(np.array(list("abcdefghijkl"), object))
"""
for codec, more in (("deflate", ""), ("portable", ", codec='portable', abs=1e-3"),
                    ("zstd", ", codec='zstd'"), ("trz", ", codec='trz', abs=1e-3"),
                    ("xor", ", codec='xor'")):
    add("`tailrace.open`", codec, "default", f"python_{codec}.nc",
        by_python(f"with tailrace.open(path, 'w') as file: fill(file{more})"))
add("`tailrace.open`", "deflate", NEWER, "python_v110.nc",
    by_python(f"with tailrace.open(path, 'w', options='{NEWER}') as file: fill(file)"))
add("`tailrace.open`, then \"a\"", "deflate", "default", "python_append.nc", by_python("""
with tailrace.open(path, "w") as file: fill(file)
with tailrace.open(path, "a") as file: file["tas"][6:8] = values(2, 20, 24).astype("f4")
"""))
add("`tailrace.write_dataset`", "deflate", "default", "python_xarray.nc", by_python("""
import xarray
tas = ("time", "y", "x"), values(6, 20, 24).astype("f4")
dataset = xarray.Dataset({"tas": tas}, {"time": np.arange(6) * 2.0}, {"title": "xarray"})
tailrace.write_dataset(dataset, path, unlimited_dims=["time"])
"""))


def add_writer(kind, codec, form, options=""):
    def make(path):
        run(BUILD / "bin/matrix_writer", path, kind, options)
    name = f"writer_{kind}_{codec}_{form.replace('=', '_')}.h5"
    door = {"one": "C++, one step", "steps": "C++, steps over time"}[kind]
    add(door, codec, form, name, make)


for kind in ("one", "steps"):
    add_writer(kind, "deflate", "default", "codec=deflate")
    add_writer(kind, "portable", "default", "codec=portable,bound=abs=1e-3")
add_writer("one", "trz", "default", "codec=trz,bound=abs=1e-3")
add_writer("one", "deflate", "layout=front", "codec=deflate,layout=front")
add_writer("one", "deflate", NEWER, f"codec=deflate,{NEWER}")
add_writer("steps", "deflate", OLDER, f"codec=deflate,{OLDER}")


def add_pnetcdf(codec, form, options=""):
    def make(path):
        run(BUILD / "bin/pnetcdf/matrix_records", path, TAILRACE_OPTIONS=options,
            LD_PRELOAD=str(BUILD / "lib/libtailrace_pnetcdf.so"))
    add("PnetCDF, preloaded", codec, form, f"pnetcdf_{codec}_{form.replace('=', '_')}.nc", make)


add_pnetcdf("deflate", "default")
add_pnetcdf("deflate", "layout=front", "layout=front")
add_pnetcdf("deflate", NEWER, NEWER)
add_pnetcdf("trz", "default", "codec=trz,bound=abs=1e-3")


def add_serial(tool, codec, options=""):
    preload = {"LD_PRELOAD": str(BUILD / "lib/libtailrace_hdf5_serial.so"),
               "TAILRACE_OPTIONS": options}

    def make(path):
        if tool == "nccopy":
            # nccopy 4.9.0 fails for texts of variable length if deflate is requested.
            source = write_netcdf(path.with_name(f"source_{path.name}"), texts=False)
            run("nccopy", "-d", "1", "-s", source, path, **preload)
        else:
            run(DEBIAN_PYTHON, HERE / "matrix_program.py", path, **preload)
    add(f"HDF5, serial, preloaded: {tool}", codec, "default",
        f"serial_{tool}_{codec}.{'nc' if tool == 'nccopy' else 'h5'}", make)


def add_parallel(codec, options=""):
    def make(path):
        run("mpiexec", "-n", 1, "env", f"LD_PRELOAD={BUILD / 'lib/libtailrace_hdf5.so'}",
            f"TAILRACE_OPTIONS={options}", DEBIAN_PYTHON, HERE / "matrix_program.py", path,
            "parallel")
    add("HDF5, parallel, preloaded: h5py", codec, "default", f"parallel_h5py_{codec}.h5", make)


add_serial("nccopy", "deflate")
add_serial("nccopy", "trz", "codec=trz,bound=abs=1e-3")
add_serial("h5py", "deflate")
add_serial("h5py", "portable", "codec=portable,bound=abs=1e-3")
add_parallel("deflate", "codec=deflate")
add_parallel("portable", "codec=portable,bound=abs=1e-3")


def make_all(folder):
    """Make all files; return their paths in the rows' order."""
    for row in ROWS:
        path = folder / row.file
        row.make(path)
    return [folder / row.file for row in ROWS]
