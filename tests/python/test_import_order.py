"""Importing our packages changes nothing for other packages, in any order of imports.

Each case is a separate process. It prints what h5py and netCDF4 read from one file per filter, and
what h5py writes with hdf5plugin. The same imports without our packages give the expected output;
the only addition is that trz and xor are readable.
"""

import ast
import functools
import itertools
import os
import shutil
import subprocess
import sys

import hdf5plugin
import pytest

import python_package
from cli_tools import ROOT

tailrace = python_package.load()

OTHERS = ("h5py", "netCDF4", "hdf5plugin")
#: Values of HDF5_PLUGIN_PATH before Python starts.
BEFORE = {"unset": None, "empty": "", "not there": "/nowhere", "a folder": hdf5plugin.PLUGINS_PATH}
READ = """
import h5py, netCDF4, hdf5plugin, os, pathlib, sys
import numpy as np
def works(use):
    try: return bool(use())
    except (OSError, RuntimeError, ValueError): return False
def written(options):
    with h5py.File("w.h5", "w", driver="core", backing_store=False) as file:
        file.create_dataset("u", data=np.arange(4096.0), chunks=(1024,), **options)
        return (file["u"][:] == np.arange(4096.0)).all()
found = {}
for path in sorted(pathlib.Path(FOLDER).glob("*.nc")):
    for kind in (h5py.File, netCDF4.Dataset):
        with kind(path, "r") as file:
            found[path.stem, kind.__module__] = works(
                lambda: abs(file["u"][:] - np.arange(4096.0)).max() <= 1e-3)
for name in ("Zstd", "Blosc", "BZip2"):
    found[name, "written"] = works(lambda: written(getattr(hdf5plugin, name)()))
print(found)
"""


def child(text, packages, before=None, python=sys.executable):
    """Run Python in which these folders of our packages can be imported."""
    environment = {name: value for name, value in python_package.package_environment().items()
                   if name not in ("PYTHONPATH", "HDF5_PLUGIN_PATH")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    if before is not None:
        environment["HDF5_PLUGIN_PATH"] = before
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, timeout=600,
                          env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Return folders for PYTHONPATH: one with each package, and without the other."""
    filters = tmp_path_factory.mktemp("filters")
    shutil.copytree(ROOT / "python" / "filters" / "tailrace_filters", filters / "tailrace_filters")
    shutil.copy(ROOT / "python" / "tailrace" / "_plugins.py", filters / "tailrace_filters")
    whole = tmp_path_factory.mktemp("whole")
    (whole / "tailrace").symlink_to(ROOT / "python" / "tailrace")
    return {"tailrace": whole, "tailrace_filters": filters}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, packages):
    """Write a netCDF-4 file per filter."""
    folder = tmp_path_factory.mktemp("files")
    child(f"""
import h5py, hdf5plugin, tailrace, numpy as np
u = np.arange(4096.0)
for name in ("Zstd", "Blosc", "BZip2", "deflate"):
    options = dict(compression=4) if name == "deflate" else getattr(hdf5plugin, name)()
    with h5py.File({str(folder)!r} + f"/{{name}}.nc", "w") as file:
        file.create_dataset("x", data=u).make_scale("x")
        file.create_dataset("u", data=u, chunks=(1024,), **options).dims[0].attach_scale(file["x"])
for name, bound in (("trz", dict(abs=1e-3)), ("xor", {{}})):
    with tailrace.open({str(folder)!r} + f"/{{name}}.nc", "w") as file:
        file.create_variable("u", "x", data=u, codec=name, **bound)
""", [packages["tailrace"]])
    return folder


@functools.cache
def read_after(imports, folder, packages, before):
    lines = [f"import {name}" for name in imports] + [f"FOLDER = {str(folder)!r}", READ]
    return ast.literal_eval(child("\n".join(lines), packages, before).splitlines()[-1])


@pytest.mark.sample(48)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("others", list(itertools.permutations(OTHERS)), ids="-".join)
@pytest.mark.parametrize("package", ["tailrace", "tailrace_filters"])
def test_any_order(package, others, place, before, folder, packages):
    order = (*others[:place], package, *others[place:])
    expected = read_after(others, folder, (), BEFORE[before])
    found = read_after(order, folder, (packages[package],), BEFORE[before])
    ours = {key for key in found if key[0] in ("trz", "xor")}
    assert len(found) == 15 and len(ours) == 4
    assert found == {**expected, **dict.fromkeys(ours, True)}
    if before == "unset":
        assert all(read for (_, how), read in found.items() if how != "written"), found


@pytest.mark.parametrize("package", ["tailrace", "tailrace_filters", "both"])
def test_environment_and_modules_stay(package, packages, tmp_path):
    """Child processes inherit the same environment as without Tailrace."""
    names = list(packages) if package == "both" else [package]
    for before in BEFORE.values():
        said = child(f"""
import os, subprocess, sys
before = dict(os.environ)
import {", ".join(names)}
assert dict(os.environ) == before
assert not {{"h5py", "netCDF4", "tables"}} & set(sys.modules)
if "tailrace" in sys.modules:
    import numpy as np
    path = {str(tmp_path / "u.nc")!r}
    with tailrace.open(path, "w") as file:
        file.create_variable("u", "x", data=np.arange(5000.0), codec="zstd")
    with tailrace.open(path) as file: assert file["u"][4999] == 4999
sys.stdout.flush()
subprocess.run(["env"], check=True)
""", packages.values(), before)
        found = [line for line in said.splitlines() if line.startswith("HDF5_PLUGIN_PATH=")]
        assert found == ([] if before is None else [f"HDF5_PLUGIN_PATH={before}"])


@pytest.mark.parametrize("package", ["tailrace", "tailrace_filters"])
def test_a_child_process_reads_as_without_us(package, folder, packages):
    """The child imports netCDF4, which reads the inherited environment."""
    text = (f"import {package}, subprocess, sys\n"
            f"subprocess.run([sys.executable, '-c', {f'FOLDER = {str(folder)!r}' + READ!r}])")
    found = ast.literal_eval(child(text, [packages[package]]).splitlines()[-1])
    assert found == read_after((), folder, (), None)


@pytest.mark.parametrize("package", ["tailrace", "tailrace_filters"])
@pytest.mark.parametrize("other", ["h5py", "netCDF4"])
def test_a_folder_that_is_set_after_our_import_is_searched(package, other, folder, packages):
    assert "True" in child(f"""
import os, {package}
os.environ["HDF5_PLUGIN_PATH"] = {hdf5plugin.PLUGINS_PATH!r}
import {other}
with getattr({other}, "File" if {other!r} == "h5py" else "Dataset")({str(folder)!r} + "/Zstd.nc",
                                                                   "r") as file:
    print(file["u"][4095] == 4095)
""", [packages[package]])


def test_both_packages_and_probes_for_others(folder, packages):
    """Looking for a package does not import it, and loaders are Python's own afterwards. Imports
    that fail or are repeated behave as without Tailrace."""
    child(f"""
import importlib, importlib.util, pathlib, sys
import tailrace, tailrace_filters
for turn in range(3): assert importlib.util.find_spec("netCDF4").origin.endswith("__init__.py")
sys.path.insert(0, {str(folder)!r})
pathlib.Path({str(folder)!r}, "tables.py").write_text("raise ImportError('as ever')")
try: import tables
except ImportError as failure: assert str(failure) == "as ever"
else: raise AssertionError("tables")
assert "tables" not in sys.modules
import netCDF4, h5py
for module in (netCDF4, h5py):
    loader = module.__spec__.loader
    assert type(loader) is importlib.machinery.SourceFileLoader, loader
    assert set(vars(loader)) == {{"name", "path"}}, vars(loader)
    for name in ("trz", "xor"):
        with getattr(module, "File" if module is h5py else "Dataset")(
                {str(folder)!r} + f"/{{name}}.nc", "r") as file:
            assert abs(file["u"][4095] - 4095) <= 1e-3
importlib.reload(importlib.import_module("h5py.version"))
importlib.reload(netCDF4)
assert tailrace.register() and tailrace.register_xor() and tailrace_filters.register()
for codec in (tailrace.Trz(abs=1e-3), tailrace.Xor()):
    assert isinstance(codec, h5py.filters.FilterRefBase)
""", packages.values())


def test_imports_while_a_file_is_written(tmp_path, packages):
    """Imports must not replace filter classes that the engine's HDF5 uses for datasets."""
    child(f"""
import numpy as np, tailrace
u = np.sin(np.linspace(0, 9, 60000)).reshape(60, 1000)
path = {str(tmp_path / "u.nc")!r}
with tailrace.open(path, "w") as file:
    for i, module in enumerate(("netCDF4", "h5py", "hdf5plugin", "tables")):
        try: __import__(module)
        except ImportError: assert module == "tables"
        file.create_variable(f"u{{i}}", ("y", "x"), data=u, codec="trz", abs=1e-3)
        file.create_variable(f"v{{i}}", ("y", "x"), data=u, codec="xor")
import h5py, netCDF4
for kind in (h5py.File, netCDF4.Dataset, tailrace.open):
    with kind(path, "r") as file:
        for i in range(4):
            assert abs(file[f"u{{i}}"][:] - u).max() <= 1e-3 and (file[f"v{{i}}"][:] == u).all()
""", [packages["tailrace"]])


@pytest.mark.full
@pytest.mark.parametrize("package_first", [True, False])
def test_pytables(package_first, tmp_path, folder, packages):
    """PyTables has a third HDF5, which tailrace-filters serves in the readers' environment."""
    imports = ["tailrace_filters", "tables"]
    python = ROOT / "build" / "readers" / "bin" / "python"
    assert python.exists(), f"{python} is missing: scripts/setup --full makes it"
    child(f"""
import {", ".join(imports if package_first else reversed(imports))}
for name in ("trz", "xor", "deflate"):
    with tables.open_file({str(folder)!r} + f"/{{name}}.nc") as file:
        assert abs(file.root.u[4095] - 4095) <= 1e-3
import h5py, netCDF4
for kind in (h5py.File, netCDF4.Dataset):
    with kind({str(folder)!r} + "/trz.nc", "r") as file:
        assert abs(file["u"][4095] - 4095) <= 1e-3
""", [packages["tailrace_filters"]], python=python)
