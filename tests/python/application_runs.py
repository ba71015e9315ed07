"""Helpers that run the applications of examples/ and read their reports.

If an application or its variant is not built, the test is skipped. All other problems are failures.
"""

import contextlib
import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, ROOT, launcher

OUTPUTS = ["hdf5", "sync", "async", "in_situ"]


def build_folder():
    """Return the build's folder; TAILRACE is its bin/tailrace."""
    tailrace = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    return tailrace.parent.parent


def application(name):
    """Return the path of an application; skip the test if it is not built."""
    program = build_folder() / "examples" / name
    if not program.exists():
        pytest.skip(f"{program} is not built")
    return program


def preload(options=""):
    """Return variables that preload libtailrace_pnetcdf.so and set TAILRACE_OPTIONS."""
    library = build_folder() / "lib" / "libtailrace_pnetcdf.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    plugins = build_folder() / "lib" / "hdf5" / "plugin"
    return [f"LD_PRELOAD={library}", f"HDF5_PLUGIN_PATH={plugins}", f"TAILRACE_OPTIONS={options}"]


def start(name, *arguments, ranks=1, timeout=600, variables=()):
    """Run to the end and return the process, whatever its exit status. `variables` are set for the
    ranks, not the launcher."""
    command = [launcher(), "-n", str(ranks), "env", *variables, str(application(name)),
               *map(str, arguments)]
    environment = {"OMPI_MCA_hwloc_base_binding_policy": "none", **ENVIRONMENT}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                          env=environment)


def run(name, folder, *arguments, ranks=1, output="none", variables=()):
    """Run an application, expect all of its checks to pass, and return its report.

    The file is OUTPUT.h5."""
    if output == "hdf5":
        application(name + "-hdf5")
    report = folder / f"report_{output}_{ranks}.json"
    done = start(name, *arguments, "--output", output, "--file", folder / f"{output}.h5",
                 "--json", report, ranks=ranks, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = json.loads(report.read_text())
    assert all(check["passed"] for check in numbers["checks"])
    return numbers


def facts_and_checks(report):
    """Facts and check values of the application's report, by name."""
    return {**report["facts"], **{check["name"]: check["value"] for check in report["checks"]}}


@contextlib.contextmanager
def opened(path, mode="r"):
    """Read with h5py, which decodes the default codec through Tailrace's plug-in."""
    h5py.h5pl.append(str(build_folder() / "lib" / "hdf5" / "plugin").encode())
    try:
        with h5py.File(path, mode) as file:
            yield file
    finally:
        h5py.h5pl.remove(h5py.h5pl.size() - 1)


def arrays(path):
    """All datasets of an HDF5 file by name."""
    with opened(path) as file:
        return {name: file[name][:] for name in file}


def exact_arrays(name, folder, *arguments, ranks=1):
    """Return the datasets of a lossless run."""
    (folder / "exact").mkdir()
    run(name, folder / "exact", *arguments, "--codec", "none", ranks=ranks, output="sync")
    return arrays(folder / "exact" / "sync.h5")


def assert_within_bounds(path, exact):
    """Check that every dataset equals the exact one within the bound that the file records."""
    with opened(path) as file:
        assert sorted(file) == sorted(exact)
        for name, values in exact.items():
            bound = file[name].attrs.get("tailrace_absolute_bound", 0.0)
            error = np.abs(file[name][:].astype("f8") - values.astype("f8"))
            assert file[name].shape == values.shape
            assert error.max() <= bound, f"{name}: {error.max()} > {bound}"
