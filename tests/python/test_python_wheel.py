"""Python package as users install it: pip install, doctests, types, notebooks.

The wheel is built with compiler and flags of the build under test. Its sources are joined in the
same way (cmake/TailraceJoin.cmake), so that ccache finds its objects.
"""

import base64
import doctest
import faulthandler
import importlib
import json
import os
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import python_package
from cli_tools import ROOT, program, smooth

tailrace = python_package.load()

# Modules that need a package of another project.
OPTIONAL = {"_xarray": "xarray", "_xarray_write": "xarray", "_checked_parts": "xarray",
            "numcodecs": "numcodecs", "zarr": "zarr"}


@pytest.mark.parametrize("name", ["", *(
    module.name for module in pkgutil.iter_modules([str(ROOT / "python" / "tailrace")]))])
def test_doctests(name):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    module = importlib.import_module(f"tailrace.{name}" if name else "tailrace")
    assert doctest.testmod(module).failed == 0


def test_every_public_name_is_described():
    for name in tailrace.__all__:
        assert getattr(tailrace, name).__doc__, name


@pytest.mark.full
def test_types():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental"], cwd=ROOT,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.full
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(notebook):
    """Every cell runs in a new kernel, and has the output that the notebook stores."""
    for needed in ("nbclient", "ipykernel", "matplotlib", "iris_sample_data"):
        pytest.importorskip(needed)
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "run-notebooks"), str(notebook)],
                          capture_output=True, text=True, timeout=600,
                          env=python_package.package_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def test_notebooks_are_stored_with_their_pictures():
    """All cells have run in order without failure, and the pictures are small."""
    n_pictures, picture_bytes = 0, 0
    for notebook in NOTEBOOKS:
        cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
                 if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert not any(output["output_type"] == "error" for output in outputs)
        pictures = [output["data"]["image/png"] for output in outputs
                    if "image/png" in output.get("data", {})]
        n_pictures += len(pictures)
        picture_bytes += sum(len(base64.b64decode(picture)) for picture in pictures)
    assert len(NOTEBOOKS) >= 3 and n_pictures >= 6 and picture_bytes < 300e3


def included(source, found):
    """Return all of Tailrace's headers that a source includes, also through others."""
    for name in re.findall(r'#include "([^"]+)"', source.read_text(encoding="utf-8")):
        for folder in ("src", "frontends"):
            header = ROOT / folder / name
            if header.exists() and header not in found:
                found.add(header)
                included(header, found)
    return found


def test_nothing_in_the_wheel_needs_what_it_omits():
    """The engine's module does not load otherwise, which only an installed wheel shows."""
    text = (ROOT / "cmake" / "TailraceWheel.cmake").read_text(encoding="utf-8")
    omits = "|".join(re.findall(r'"(/[^"]*\$)"', text)).replace("\\\\", "\\")
    sources = {path for folder in ("src", "frontends/python", "frontends/c", "frontends/report")
               for path in (ROOT / folder).rglob("*.cpp")}
    omitted = {path for path in sources if re.search(omits, path.as_posix())}
    assert len(omitted) > 20
    headers = {path.with_suffix(".hpp") for path in omitted}
    for source in sources - omitted:
        assert not included(source, set()) & headers, source


def build_cache():
    """Return the settings of the build under test."""
    cache = pathlib.Path(program()).resolve().parents[1] / "CMakeCache.txt"
    if not cache.exists():
        return {}
    return dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(), re.MULTILINE))


def build_flags():
    """Return pip's options for the settings of the build under test that affect the compiler."""
    found = build_cache()
    names = ("TAILRACE_WERROR", "TAILRACE_DEFAULT_PLUGIN_PATH", "TAILRACE_MPI", "nanobind_DIR",
             "TAILRACE_JOIN_SOURCES", "TAILRACE_FLAGS_SET", "CMAKE_C_COMPILER",
             "CMAKE_CXX_COMPILER", "CMAKE_C_FLAGS_RELWITHDEBINFO",
             "CMAKE_CXX_FLAGS_RELWITHDEBINFO")
    words = [f"--config-settings=cmake.define.{name}={found[name]}"
             for name in names if name in found]
    build_type = found.get("CMAKE_BUILD_TYPE", "Release")
    return [*words, f"--config-settings=cmake.build-type={build_type}"]


def pip(python, *words, fails=False):
    """Run pip like a user, in a clean environment that keeps only the package index.

    @returns the environment, or the output if the command must fail."""
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith(("PYTHON", "TAILRACE"))}
    # The build competes with tests of other workers. The total time limit of a test
    # (pyproject.toml) would end it before its own limit, together with the worker.
    faulthandler.cancel_dump_traceback_later()
    done = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *map(str, words)],
        capture_output=True, text=True, timeout=1500, env=clean)
    if "No matching distribution" in done.stderr or "ConnectionError" in done.stderr:
        pytest.skip("no package index")
    said = done.stdout[-4000:] + done.stderr[-8000:]
    assert (done.returncode != 0) == fails, said
    return said if fails else clean


def fresh_python(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def use(python, text, environment, folder):
    done = subprocess.run([python, "-c", textwrap.dedent(text)], capture_output=True, text=True,
                          timeout=600, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_pip_install(tmp_path):
    """`pip install .` in a fresh environment, used there without the source tree."""
    fresh = fresh_python(tmp_path / "venv")
    clean = pip(fresh, "install", "-q", ROOT, "h5py", "xarray", *build_flags())
    use(fresh, """
        import sys
        import h5py, numpy as np, tailrace, xarray as xr
        assert tailrace.__file__.startswith(sys.prefix)
        u = np.random.rand(64, 64).astype("f4")
        with h5py.File("in_memory.h5", "w", driver="core", backing_store=False) as file:
            file.create_dataset("u", data=u, chunks=(32, 32), compression=tailrace.Trz(abs=0.01))
            file.create_dataset("v", data=u, chunks=(32, 32), **tailrace.Xor())
            assert 0 < abs(file["u"][...] - u).max() <= 0.01 and (file["v"][...] == u).all()
        with tailrace.open("u.nc", "w") as file:
            file.create_variable("u", ("y", "x"), data=u, abs=0.01)
        with xr.open_dataset("u.nc", engine="tailrace") as file:
            assert 0 < abs(file.u - u).max() <= 0.01
        with h5py.File("u.nc") as file:
            assert 0 < abs(file["u"][...] - u).max() <= 0.01
        assert "mpi" not in open("/proc/self/maps").read()
        from importlib.metadata import entry_points
        for group, n_codecs in (("numcodecs.codecs", 2), ("zarr.codecs", 4)):
            ours = [one for one in entry_points(group=group) if one.dist.name == "tailrace"]
            assert len(ours) == n_codecs, group
        assert tailrace.report("u.nc", "u.nc", "page.html").ok
        table = tailrace.suggest_bound(u)
        for call, lacks in ((table.plot, "matplotlib"),
                            (lambda: tailrace.references("u.nc"), "numcodecs")):
            try:
                call()
            except ImportError as error:
                assert f"pip install {lacks}" in str(error)
            else:
                raise AssertionError(lacks)
    """, clean, tmp_path)


@pytest.mark.full
def test_pip_install_where_things_are_missing(tmp_path):
    """Without fmt the build stops and names it. A wheel may be built without the engine.

    Then filters and arrays work, and open() reports the missing engine."""
    fresh = fresh_python(tmp_path / "venv")
    without = "--config-settings=cmake.define.CMAKE_DISABLE_FIND_PACKAGE_fmt=ON"
    said = pip(fresh, "install", "-q", ROOT, without, *build_flags(), fails=True)
    assert "needs what is missing here: fmt (libfmt-dev)" in " ".join(said.split())
    clean = pip(fresh, "install", "-q", ROOT, "h5py", without, *build_flags(),
                "--config-settings=cmake.define.TAILRACE_FILTER_ONLY=ON")
    use(fresh, """
        import numpy as np, tailrace
        u = np.linspace(0, 1, 1000)
        assert abs(tailrace.decode(tailrace.encode(u, abs=0.01)) - u).max() <= 0.01
        try:
            tailrace.open("u.nc", "w")
        except NotImplementedError as error:
            assert "built without its engine" in str(error), error
        else:
            raise AssertionError("it opened")
    """, clean, tmp_path)


@pytest.mark.full
def test_filters_alone(tmp_path):
    """tailrace-filters has two plug-ins and a module, without dependencies.

    It serves h5py, netCDF4 and h5netcdf, in any order of imports, and other programs."""
    u = smooth((8, 60, 90))
    with tailrace.open(tmp_path / "u.nc", "w") as file:
        file.create_variable("u", ("t", "y", "x"), data=u, codec="trz", abs=1e-3)
        file.create_variable("v", ("t", "y", "x"), data=u, codec="xor")
    with tailrace.open(tmp_path / "u.nc") as file:
        need = file.attrs["tailrace_readers_need"]
    fresh = fresh_python(tmp_path / "venv")
    clean = pip(fresh, "install", "-q", ROOT / "python" / "filters", *build_flags())
    clean = {name: value for name, value in clean.items() if name != "HDF5_PLUGIN_PATH"}
    use(fresh, """
        import importlib.metadata as metadata, os, sys
        import tailrace_filters
        assert "numpy" not in sys.modules and tailrace_filters.register() is False
        about = metadata.metadata("tailrace-filters")
        assert about.get_all("Requires-Dist") is None and about["License-Expression"]
        assert about["Version"] == tailrace_filters.__version__
        files = [str(file) for file in metadata.files("tailrace-filters")]
        assert sum(file.endswith(".so") for file in files) == 2
        assert any("NOTICES" in file for file in files) and any("LICENSE" in file for file in files)
        assert "HDF5_PLUGIN_PATH" not in os.environ
    """, clean, tmp_path)
    pip(fresh, "install", "-q", "h5py", "netCDF4", "h5netcdf")
    assert "import tailrace_filters (pip install ./python/filters" in need
    for order in ("tailrace_filters, netCDF4, h5py", "netCDF4, h5py, tailrace_filters"):
        use(fresh, f"""
            import {order}
            import h5netcdf, numpy as np
            for kind in (h5py.File, netCDF4.Dataset, h5netcdf.File):
                with kind("u.nc", "r") as file:
                    u, v = file["u"][:], file["v"][:]
                    assert u.shape == (8, 60, 90) and 0 < abs(u - v).max() <= 1e-3, kind
        """, clean, tmp_path)
    if shutil.which("h5dump"):
        use(fresh, """
            import os, subprocess
            import tailrace_filters
            said = subprocess.run(
                ["h5dump", "-d", "/u", "-s", "7,59,88", "-c", "1,1,2", "u.nc"],
                capture_output=True, text=True,
                env={**os.environ, "HDF5_PLUGIN_PATH": tailrace_filters.PLUGIN_PATH})
            assert said.returncode == 0 and "(7,59,88)" in said.stdout, said
        """, clean, tmp_path)
