"""Python package of the source tree, with the extension modules of the build.

load() imports the package into the process of the tests; run() uses a separate process. The
variables TAILRACE_ENGINE_DIR and TAILRACE_H5TRZ have priority over the build.
"""

import importlib
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from cli_tools import ENVIRONMENT, ROOT, launcher, program


def package_environment():
    """Return the environment in which a process can import the package."""
    built = pathlib.Path(program()).resolve().parents[1] / "lib"
    environment = {key: value for key, value in ENVIRONMENT.items() if key != "HDF5_PLUGIN_PATH"}
    environment.setdefault("TAILRACE_ENGINE_DIR", str(built / "python"))
    # xarray finds its engine "tailrace" through the entry points in the engine's folder.
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "python"), environment["TAILRACE_ENGINE_DIR"]])
    environment.setdefault("TAILRACE_H5TRZ", str(built / "hdf5" / "plugin" / "libh5trz.so"))
    return environment


def load():
    """Import the package; skip the module's tests if it is not built."""
    try:
        environment = package_environment()
    except pytest.skip.Exception as missing:
        pytest.skip(str(missing), allow_module_level=True)
    for name in ("TAILRACE_ENGINE_DIR", "TAILRACE_H5TRZ"):
        os.environ[name] = environment[name]
    if not pathlib.Path(environment["TAILRACE_H5TRZ"]).exists():
        pytest.skip("libh5trz.so is not built", allow_module_level=True)
    for folder in environment["PYTHONPATH"].split(os.pathsep):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    package = importlib.import_module("tailrace")
    folder = pathlib.Path(environment["TAILRACE_ENGINE_DIR"])
    if not list(folder.glob("_engine*.so")):
        pytest.skip("the engine is not built (no nanobind?)", allow_module_level=True)
    return package


def run(text, *, ranks=0, timeout=600, **more):
    """Run Python source in a separate process, or on several ranks; return the output."""
    words = [sys.executable, "-c", textwrap.dedent(text)]
    if ranks:
        words = [launcher(), "-n", str(ranks), *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout,
                          env={**package_environment(), **more})
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
