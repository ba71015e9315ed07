"""Three HDF5 libraries in one process: h5py's, netCDF4's and ours, on the same files.

The wheels of h5py and netCDF4 have their own. Ours is the system's, or part of the engine in a
binary wheel, with which scripts/check-wheel runs these tests. Each case is a separate process,
because it depends on the first loaded library which functions a plug-in calls.
"""

import itertools

import pytest

import python_package

tailrace = python_package.load()

USE = """
    import numpy as np
    u = np.linspace(0, 1, 4000, dtype="f4").reshape(10, 20, 20)
    def with_h5py(mode, name):
        with h5py.File(path, mode) as file:
            if mode != "r": file.create_dataset(name, data=u, chunks=(5, 20, 20), compression=4)
            else: assert np.array_equal(file[name][...], u)
    def with_netcdf4(mode, name):
        with netCDF4.Dataset(path, mode) as file:
            if mode != "r":
                dims = ("t", "y", "x")
                for dim, n in zip(dims, u.shape):
                    if dim not in file.dimensions: file.createDimension(dim, n)
                file.createVariable(name, "f4", dims, zlib=True)[:] = u
            else: assert np.array_equal(file[name][:], u)
    def with_tailrace(mode, name):
        with tailrace.open(path, mode) as file:
            if mode != "r": file.create_variable(name, ("t", "y", "x"), data=u)
            else: assert np.array_equal(file[name][...], u)
    uses = dict(h5py=with_h5py, netCDF4=with_netcdf4, tailrace=with_tailrace)
"""


@pytest.mark.parametrize("order", list(itertools.permutations(("h5py", "netCDF4", "tailrace"))),
                         ids="-".join)
def test_any_order_of_imports(order, tmp_path):
    imports = "\n".join(f"    import {name}" for name in order)
    python_package.run(f"""
    import os
{imports}
    path = {str(tmp_path / "file.nc")!r}
{USE}
    uses["netCDF4"]("w", "of_netCDF4")
    uses["tailrace"]("a", "of_tailrace")
    uses["netCDF4"]("a", "of_netCDF4_again")
    for turn in range(3):
        for name in {order!r}:
            for variable in ("of_netCDF4", "of_tailrace", "of_netCDF4_again"):
                uses[name]("r", variable)
    # All three at once.
    files = [h5py.File(path), netCDF4.Dataset(path), tailrace.open(path)]
    for turn in range(2):
        for file in files: assert np.array_equal(file["of_tailrace"][3], u[3])
    for file in files: file.close()
    # Ours alone is new: each of the others has brought its own. That of a binary wheel is no file.
    inside = False
    if os.path.exists(os.path.join(os.environ["TAILRACE_ENGINE_DIR"], "_build.py")):
        from tailrace._build import HDF5_IS_INSIDE as inside
    maps = open("/proc/self/maps").read()
    found = {{line.split()[-1] for line in maps.splitlines() if "/libhdf5" in line
             and "_hl" not in line}}
    assert len(found) == 3 - inside, found
""")


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", ["hdf5plugin", "tailrace"])
@pytest.mark.parametrize("codec", ["zstd", "blosc", "blosc2", "bitshuffle", "lz4", "bzip2", "zfp",
                                   "sz3", "sperr"])
def test_plugins_of_hdf5plugin(first, codec, tmp_path):
    """The order of imports does not matter: hdf5plugin's plug-ins use h5py's HDF5, and ours use
    ours."""
    bound = "abs=1e-3" if codec in ("zfp", "sz3", "sperr") else ""
    python_package.run(f"""
    import {first}
    import h5py, tailrace, hdf5plugin
    import numpy as np
    u = np.sin(np.linspace(0, 40, 32 * 32 * 16)).astype("f4").reshape(32, 32, 16)
    path = {str(tmp_path / "file.nc")!r}
    for turn in range(2):
        with tailrace.open(path, "w") as file:
            file.create_variable("u", ("z", "y", "x"), data=u, codec={codec!r},
                                 bound={bound!r} or None, chunks=(16, 32, 16))
            file.create_variable("v", ("z", "y", "x"), data=u, codec={codec!r},
                                 bound={bound!r} or None, chunks=(32, 16, 16))
        with tailrace.open(path) as file, h5py.File(path) as other:
            for name in "uv":
                ours, theirs = file[name][...], other[name][...]
                assert np.array_equal(ours, theirs)
                assert np.abs(ours - u).max() <= {1e-3 if bound else 0}
                assert file[name].filters, file[name]
        # And h5py's own writing by the same plug-in is not disturbed.
        with h5py.File(path, "w") as file:
            file.create_dataset("w", data=u, chunks=(8, 32, 16), **hdf5plugin.Blosc2())
            assert np.array_equal(file["w"][...], u)
        with tailrace.open(path) as file:
            assert np.array_equal(file["w"][...], u)
""")


def test_our_filters_in_h5py_and_h5netcdf(tmp_path):
    """Importing the package suffices to read trz and xor with other packages."""
    pytest.importorskip("h5netcdf")
    python_package.run(f"""
    import tailrace, h5py, h5netcdf, numpy as np, xarray as xr
    u = np.sin(np.linspace(0, 40, 32 * 32)).astype("f4").reshape(32, 32)
    path = {str(tmp_path / "file.nc")!r}
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("y", "x"), data=u, codec="trz", abs=1e-3)
        file.create_variable("v", ("y", "x"), data=u, codec="xor")
    with h5netcdf.File(path) as file:
        assert np.abs(file["u"][...] - u).max() <= 1e-3
        assert np.array_equal(file["v"][...], u)
    with xr.open_dataset(path, engine="h5netcdf") as file:
        assert np.abs(file["u"].values - u).max() <= 1e-3
""")
