#!/usr/bin/env python3
"""Starts the programs of lab/bench/papers/transparent.py, and compares their outputs.

    lab/bench/papers/transparent_runs.py compare OUTPUT EXPECTED [NAME=BOUND...]

compares two files in a separate process: h5py loads an HDF5, and the peak memory of a process also
counts for its children.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import in_situ

ROOT = pathlib.Path(__file__).resolve().parents[3]


def build():
    """Folder of the build. TAILRACE is its bin/tailrace."""
    tailrace = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    return tailrace.absolute().parent.parent


def why_not_measured():
    """Reason for which times of this build are not representative, or an empty string."""
    path = build() / "CMakeCache.txt"
    cache = path.read_text() if path.exists() else ""
    if "RELWITHDEBINFO:STRING=-Og" in cache:
        return f"{build()} is not optimised (preset ci)"
    if "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo" in cache and (
            "TAILRACE_OPTIMISE_EVERYTHING:BOOL=ON" not in cache):
        return f"{build()} is not optimised everywhere (-DTAILRACE_OPTIMISE_EVERYTHING=ON)"
    return ""


def library():
    path = build() / "lib" / "libtailrace_pnetcdf.so"
    return path if path.exists() else None


def plugin_path():
    """Plug-in path: the build's folder (trz, xor), and hdf5plugin's, if installed."""
    own = str(build() / "lib" / "hdf5" / "plugin")
    try:
        import hdf5plugin
        own += ":" + hdf5plugin.PLUGINS_PATH
    except ImportError:
        pass
    return own


def start(command, what, environment=None):
    """Run to the end; if the command fails, print its last output and exit."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          env={**in_situ.MPI_ENVIRONMENT, **os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{what}: {shlex.join(map(str, command))} ended with {done.returncode}\n"
                 f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def launch(ranks, program, arguments, variables, what, report):
    """Run a program on ranks; the variables are set for the program but not for the launcher.
    @returns its report."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    start([shutil.which("mpiexec"), "-n", ranks, "env", *settings, build() / "examples" / program,
           *arguments, "--json", report], what)
    return json.loads(pathlib.Path(report).read_text())


def preload(codec_options):
    """Variables that preload Tailrace in place of PnetCDF."""
    return {"LD_PRELOAD": library(), "HDF5_PLUGIN_PATH": plugin_path(),
            **({"TAILRACE_OPTIONS": codec_options} if codec_options else {})}


def codec_options(codec):
    """Options of "trz@0.01": ["codec=trz", "bound=abs=0.01"]."""
    name, _, bound = codec.partition("@")
    return [f"codec={name}"] + ([f"bound=abs={bound}"] if bound else [])


# --- comparing

def arrays_of(path, names):
    """Arrays by name. Only for separate processes (compare), because h5py loads an HDF5."""
    import h5py
    import netCDF4
    import numpy as np

    with open(path, "rb") as file:
        classic = file.read(3) == b"CDF"
    if classic:
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return {name: np.asarray(file[name][:]) for name in names or file.variables}
    h5py.h5pl.prepend(str(build() / "lib" / "hdf5" / "plugin").encode())
    with h5py.File(path) as file:
        return {name: file[name][:] for name in names or file}


def compare(path, expected, *bounds):
    """Compare a file with `expected`; a difference ends the program. `expected` is a file of bare
    temperatures (*.f32), or a file whose variables must agree bit by bit or within `bounds` such as
    x=1e-3."""
    import numpy as np

    if expected.endswith(".f32"):
        wanted = {"temperature": np.fromfile(expected, "<f4")}
    else:
        wanted = arrays_of(expected, [])
    found = arrays_of(path, list(wanted))
    limits = {word.partition("=")[0]: float(word.partition("=")[2]) for word in bounds}
    for name, values in wanted.items():
        mine = found[name].reshape(values.shape)
        if name in limits:
            good = np.abs(mine.astype("f8") - values.astype("f8")).max() <= limits[name]
        else:
            good = mine.tobytes() == values.tobytes()
        if not good:
            sys.exit(f"{path}: {name} differs")


def check_file(path, expected, what, bounds=()):
    """Compare in a separate process; a difference ends the program."""
    start([sys.executable, __file__, "compare", path, expected, *bounds], what,
          {"HDF5_PLUGIN_PATH": plugin_path()})


if __name__ == "__main__":
    compare(*sys.argv[2:])
