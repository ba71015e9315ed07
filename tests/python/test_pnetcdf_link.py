"""Programs that are linked to lib/tailrace/pnetcdf instead of PnetCDF.

They are in C, Fortran 77 and 90, and C++, with the archive and with the shared library. The process
does not load the real library.
"""

import os
import re
import shutil
import subprocess

import netCDF4
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, ROOT, launcher, tailrace
from test_pnetcdf import built, program_folder
from test_pnetcdf import run as run_program

pytestmark = pytest.mark.sample(4)

SOURCES = ROOT / "tests" / "pnetcdf_link"
COMPILERS = {"linked.c": ["mpicc"], "linked.cpp": ["mpicxx"],
             "linked77.f": ["mpifort", "-std=legacy"], "linked90.f90": ["mpifort"]}
LANGUAGES = pytest.mark.parametrize("source", COMPILERS)


def folder():
    return built("lib", "tailrace", "pnetcdf", "libtailrace_pnetcdf_static.a").parent


def flags(path, *words):
    """Return pkg-config's output for this folder."""
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    return subprocess.run(
        ["pkg-config", *words, "pnetcdf"], capture_output=True, text=True, check=True,
        env={**os.environ, "PKG_CONFIG_PATH": str(path / "pkgconfig")}).stdout.split()


def link(source, how, target, path=None):
    path = path or folder()
    compiler = COMPILERS.get(source, ["mpicc"])
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]}")
    wrapped = source in COMPILERS and source != "linked.c"
    if wrapped and not (path / "libtailrace_pnetcdf_wrappers.a").exists():
        pytest.skip("there is no libpnetcdf.a here whose wrappers one could take")
    words = {"archive": [str(path / "libpnetcdf.a")],
             "shared": [f"-L{path}", "-lpnetcdf", f"-Wl,-rpath,{path.parents[1]}"],
             "pkg-config": flags(path, "--variable=archive")}[how]
    found = [SOURCES / source, ROOT / "tests" / "pnetcdf" / source]
    done = subprocess.run(
        [*compiler, *filter(os.path.exists, found), *flags(path, "--cflags"),
         f"-I{ROOT / 'frontends'}", "-o", target, *words, "-lm"],
        capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return target


def run(program, target, ranks, **more):
    done = subprocess.run([launcher(), "-n", str(ranks), program, target], capture_output=True,
                          text=True, timeout=600, env={**ENVIRONMENT, **more})
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == sorted(
        f"rank {rank} of {ranks}: 0 failures, real library: 0" for rank in range(ranks))
    rows = np.arange(8 * ranks, dtype="f4")[:, None]
    expected = rows + np.float32(0.001) * np.arange(1000, dtype="f4")
    with netCDF4.Dataset(target) as file:
        assert target.read_bytes()[:4] == b"\x89HDF"
        assert file["temp"].dimensions == ("y", "x") and file["temp"].units == "K"
        return file["temp"][()], expected


@LANGUAGES
@pytest.mark.parametrize("how", ["archive", "shared"])
def test_programs_link_and_run(source, how, tmp_path):
    program = link(source, how, tmp_path / "program")
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True,
                            check=True).stdout
    found = re.findall(r"NEEDED.*\[(lib(?:tailrace_)?pnetcdf[^\]]*)\]", needed)
    assert found == ([] if how == "archive" else ["libtailrace_pnetcdf.so"])
    for ranks in (1, 2, 4):
        values, expected = run(program, tmp_path / f"{ranks}.nc", ranks)
        # Compilers may round a product and a sum only once.
        assert np.abs(values - expected).max() <= 1e-5


@pytest.mark.parametrize("name", [
    "access_errors", pytest.param("access_forms", marks=pytest.mark.full), "definitions",
    "filetypes", "records"])
def test_programs_answer_as_with_the_real_library(name, tmp_path):
    """Programs of test_pnetcdf.py, linked to our archive, print the same."""
    program = link(f"{name}.c", "archive", tmp_path / name)
    for ranks in (1, 2, 4):
        ours = run_program([program, tmp_path / "ours.nc"], ranks)
        real = run_program([built("bin", "pnetcdf", name), tmp_path / "real.nc"], ranks,
                           mode="real")
        assert ours.stdout == real.stdout and ours.stdout
        assert (tmp_path / "ours.nc").read_bytes()[:4] == b"\x89HDF"


def test_classic_files_are_the_real_library_s(tmp_path):
    """PnetCDF is loaded only when a classic file is opened."""
    program, classic = link("open_any.c", "archive", tmp_path / "open_any"), tmp_path / "classic.nc"
    with netCDF4.Dataset(classic, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "i4", ("x",))[:] = [4, 5, 6]
    done = run_program([program, classic], 2)
    assert "sum of v: 15" in done.stdout
    done = run_program([program, classic], 2, TAILRACE_PNETCDF_LIBRARY="/does/not/exist.so")
    assert "NC_ENOTBUILT" in done.stdout and "needs libpnetcdf" in done.stderr


@pytest.mark.parametrize("source", ["linked.c", "linked90.f90"])
def test_options_are_served(source, tmp_path):
    program = link(source, "archive", tmp_path / "program")
    run(program, tmp_path / "exact.nc", 2)
    lossy = tmp_path / "lossy.nc"
    with pytest.raises(AssertionError, match="1 failures|[1-9][0-9]* failures"):
        # The program compares what it reads with what it wrote.
        run(program, lossy, 2, TAILRACE_OPTIONS="temp: codec=portable,bound=abs=0.01")
    done = tailrace("info", lossy)
    assert "portable" in done.stdout
    tailrace("verify", tmp_path / "exact.nc", lossy)


def test_nothing_but_the_calls_can_be_seen():
    """None of the engine's thousands of symbols is visible to programs."""
    calls = folder() / "libtailrace_pnetcdf_static.a"
    listed = subprocess.run(["nm", "-g", "--defined-only", calls], capture_output=True, text=True,
                            check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3}
    assert len(names) > 800
    assert all(name.startswith(("ncmpi_", "tailrace_pnetcdf_")) for name in names)
    # Its dependencies are strong symbols, because the linker searches no library for a weak one.
    needed = subprocess.run(["nm", "-u", calls], capture_output=True, text=True, check=True).stdout
    assert len(needed.splitlines()) > 500
    weak = {line.split()[-1] for line in needed.splitlines() if line.split()[:1] in (["w"], ["v"])}
    assert weak <= {"__cxa_pure_virtual"}  # A symbol of the compiler.
    shared = subprocess.run(["nm", "-D", "--defined-only", built("lib", "libtailrace_pnetcdf.so")],
                            capture_output=True, text=True, check=True).stdout
    assert names == {line.split()[-1] for line in shared.splitlines()}


def test_wrappers_call_nothing_but_these():
    """The Fortran wrappers are complete, and call only functions that our library has."""
    wrappers = folder() / "libtailrace_pnetcdf_wrappers.a"
    if not wrappers.exists():
        pytest.skip("no wrappers")

    def symbols(path, kind):
        said = subprocess.run(["nm", kind, path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in said.splitlines() if len(line.split()) > 1}

    calls = symbols(folder() / "libtailrace_pnetcdf_static.a", "--defined-only")
    defined = symbols(wrappers, "--defined-only")
    needed = symbols(wrappers, "-u") - defined
    assert {name for name in needed if "ncmpi" in name.lower() and name not in calls} == set()
    assert sum(name.startswith("nfmpi_") for name in defined) > 400
    assert sum(name.startswith("__pnetcdf_MOD_nf90mpi_") for name in defined) > 500
    assert not any(name.startswith("ncmpi_") for name in defined)
    # All functions that the include file declares exist.
    include = re.search(r"-I(\S+)", " ".join(
        word for word in flags(folder(), "--cflags", "--keep-system-cflags")
        if os.path.exists(f"{word[2:]}/pnetcdf.inc")))
    text = open(f"{include[1]}/pnetcdf.inc").read()
    declared = {name.lower() for name in re.findall(r"\b(nfmpi_\w+)", text, re.IGNORECASE)}
    declared.discard("nfmpi_unlimited")  # A constant.
    assert len(declared) > 400
    assert {name for name in declared if f"{name}_" not in defined} == set()


@pytest.mark.full
def test_the_folder_is_installed_and_can_be_moved(tmp_path):
    folder()  # Skips the test if the folder is not built.
    for component in ("dev", "Unspecified"):
        done = subprocess.run(["cmake", "--install", program_folder(), "--prefix",
                               tmp_path / "first", "--component", component], capture_output=True,
                              text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    shutil.move(tmp_path / "first", tmp_path / "moved")
    (installed,) = (tmp_path / "moved").glob("lib*/**/tailrace/pnetcdf")
    # Programs that search PnetCDF do not find this library by accident.
    others = [path for path in (tmp_path / "moved").rglob("libpnetcdf.*")
              if installed not in path.parents]
    assert all(path.parent.name == "pnetcdf" for path in others)
    assert list((tmp_path / "moved").rglob("pnetcdf.pc")) == [installed / "pkgconfig/pnetcdf.pc"]
    for how in ("pkg-config", "shared"):
        program = link("linked.c", how, tmp_path / how, installed)
        run(program, tmp_path / f"{how}.nc", 2)
