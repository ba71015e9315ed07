"""Documentation pages: links lead to existing pages and headings; blocks of code compile and run.

CONTRIBUTING.md ("Code in pages") states the rules for blocks. Each page's blocks of one language
run in their order and in a folder of their own. FILES creates the files that a page needs; NAMES
and DECLARATIONS define names. NOT_RUN lists blocks that cannot run, with the reasons.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata
import warnings

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from application_runs import build_folder
from cli_tools import (ENVIRONMENT, ROOT, lab_program, launcher, numbers, program, smooth,
                       tailrace)
from test_repack_plotfile import write_plotfile

FOLDERS = ["docs", "src", "lab", "examples", "tests", "packaging", "python", "trz"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         ROOT / "lab" / "simulate" / "README.md", ROOT / "lab" / "errata.md",
         ROOT / "trz" / "README.md", *sorted((ROOT / "trz" / "docs").glob("*.md"))]

#: Reasons for blocks that are not run, by page and first words.
NOT_RUN = {
    ("README.md", "./demo"): ".ci/run runs both programs",
    ("CONTRIBUTING.md", "./test"): "what .ci/run and scripts/ci-full run themselves",
    ("CONTRIBUTING.md", "scripts/prose"): "checks a checkout, and finds what it finds",
    ("docs/fortran.md", "mpifort run.f90"): "tests/package/run_package_test compiles so",
    ("docs/simulation.md", "mpicxx -std=c++17"): "tests/package/run_package_test compiles so",
    ("docs/hdf5.md", "scripts/build-hdf5"): "builds all against another HDF5: scripts/ci-full",
    ("docs/hdf5.md", "export HDF5_VOL_CONNECTOR"): "needs another HDF5: test_hdf5_programs has it",
    ("docs/install.md", "sudo apt install"): "scripts/check-install follows it in a clean root",
    ("docs/install.md", "local prefix"): "tests/package/run_package_test looks for its folders",
    ("docs/nodes.md", "sudo tests/nodes/cluster"): "needs root: scripts/nodes-test runs such",
    ("docs/performance.md", "lab/bench/all"): "measures for an hour: test_tables runs a little",
    ("docs/python.md", "apt-get install"): "test_python_wheel builds it",
    ("docs/readers.md", "scripts/build-javascript"): "test_javascript builds it, with the tools",
    ("docs/readers.md", "import h5wasm"): "test_javascript runs such",
    ("docs/readers.md", "python3 -m http.server"): "test_javascript serves the page to Chromium",
    ("docs/hdf5.md", "export LD_PRELOAD"): "test_hdf5_serial runs these tools",
    ("docs/hdf5.md", "TAILRACE_OPTIONS='t:"): "test_hdf5_serial_bounds runs such",
    ("trz/README.md", "cmake -S trz"): "scripts/check-trz follows it",
    ("trz/README.md", "uint32_t words"): "trz/tests/first_chunk.c is the whole program",
}
#: Pages whose commands run for ten seconds and more, or run tailrace-bench.
FULL_PAGES = ("docs/codecs.md", "docs/facility.md", "docs/repack.md")
#: Beginnings of lines that a text must not have, because texts are not run.
COMMANDS = re.compile(r"^(\w+=\S+ )?(tailrace(-lab)?|mpiexec|cmake|pip|python3?|h5repack|import"
                      r"|from|use|#include|call|g\+\+|mpicc|mpifort|scripts/\S+|lab/bench/\S+)\s",
                      re.MULTILINE)


def anchors(page):
    """Anchors of a page's headings that are the same on code hosts and on the site (scripts/site).

    Headings with different anchors are omitted: "JSON (`--json`)" is `json---json` on a code host
    and `json-json` on the site.
    """
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE):
        code_host = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        site = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        if code_host == site:
            found.add(site)
    return found


def test_an_anchor_is_the_same_everywhere(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One name\n```\n# code\n```\n## JSON (`--json`)\n### d\u00e9j\u00e0\n")
    assert anchors(page) == {"one-name"}


def test_links_lead_somewhere():
    pages = [*ROOT.glob("*.md")]
    for name in FOLDERS:
        pages += (ROOT / name).rglob("*.md")
    assert len(pages) > 50
    links, wrong = 0, []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in link:
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert links > 100 and wrong == []


def test_front_page_is_read_to_its_end():
    """README has fewer than 700 words, and a link to every page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 700
    linked = set(re.findall(r"\]\(docs/([\w-]+)\.md", text))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert pages - linked == set()


def test_every_page_is_in_the_navigation():
    """The navigation has each page once, and no others."""
    text = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))]
    assert sorted(re.findall(r": (docs/[\w-]+\.md)$", text, re.MULTILINE)) == pages


# --- blocks ---------------------------------------------------------------------------------------

def blocks_of(page):
    """Return (language, source) of each block of a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"),
                      re.DOTALL | re.MULTILINE)


def why_not_run(name, source):
    return [reason for (page, words), reason in NOT_RUN.items()
            if page == name and source.startswith(words)]


def to_run(name, *languages):
    return [source for language, source in blocks_of(ROOT / name)
            if language in languages and not why_not_run(name, source)]


def pages_with(*languages):
    names = [str(page.relative_to(ROOT)) for page in PAGES]
    return [name for name in names if to_run(name, *languages)]


def test_every_block_says_what_it_is():
    """No block may be skipped because its language is missing or unknown."""
    wrong, left_out, n_blocks = [], set(), 0
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for language, source in blocks_of(page):
            n_blocks += 1
            first = f"{name}: {source.splitlines()[0]}"
            left_out |= {key for key in NOT_RUN if key[0] == name and source.startswith(key[1])}
            if language == "text" and COMMANDS.search(source):
                wrong.append(f"{first}: a text with commands in it")
            elif (language not in ("text", "sh", "python", "cpp", "c", "fortran")
                    and not why_not_run(name, source)):
                wrong.append(f"{first}: nothing runs {language or 'a block without a language'}")
    assert n_blocks > 40 and wrong == []
    assert left_out == set(NOT_RUN), "reasons for blocks that are not there"


# --- C and C++: compiled; a block without main() is the body of one -------------------------------

#: Declarations that a page's fragments need.
DECLARATIONS = {
    "README.md": """
        struct Device { bool done(); void wait(); } device;
        void exchange_halos();
        void advance(std::vector<float>&);
        std::vector<float> density;
        int n_steps;
        std::uint64_t x0, y0, z0, nx, ny, nz;
        inline tailrace::File file = tailrace::File::create("run.h5");""",
    "docs/in-situ.md": """
        int kernel;
        struct Device { void launch(int); bool done(); void wait(); } device;
        void exchange();
        int n_steps;
        MPI_Comm comm;
        tailrace::Shape shape;
        tailrace::Box box;
        std::vector<float> values;""",
    "docs/read.md": """
        #include <tailrace/reader.hpp>
        std::uint64_t rank;
        inline tailrace::Reader reader = tailrace::Reader::open("small.h5");""",
    "docs/readers.md": "",
    "docs/simulation.md": """
        #include <tailrace/reader.hpp>
        std::uint64_t rank, n_ranks, n_rows, n_columns, x0, y0, nx, ny;
        const float* density;
        std::vector<float> values, u;
        std::vector<int> first, end;
        struct Span {
          using value_type = float;
          float* data_handle() const;
          int rank() const, extent(int) const, stride(int) const;
        } m;
        extern tailrace::Field<float> field;
        inline tailrace::File file = tailrace::File::create("run.h5");
        inline tailrace::Reader reader = tailrace::Reader::open("run.h5");
        const float* device_pointer;
        enum Kind { cudaMemcpyDeviceToHost };
        int cudaMemcpy(void* to, const void* from, std::size_t n_bytes, Kind);""",
}


@pytest.mark.parametrize("name", pages_with("c", "cpp"))
@pytest.mark.parametrize("compiler", [
    "g++", pytest.param("clang++-14", marks=pytest.mark.full)])
def test_c_and_cpp_compile(name, compiler, tmp_path):
    """Compile each block, with its includes first; warnings are errors."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    flags = subprocess.run(["mpicxx", "--showme:compile"], capture_output=True, text=True)
    if flags.returncode != 0:
        pytest.skip("no mpicxx of Open MPI")
    for number, source in enumerate(to_run(name, "c", "cpp")):
        if "main(" not in source:
            lines = source.splitlines()
            includes = [line for line in lines if line.startswith("#include")]
            body = [line for line in lines if not line.startswith("#include")]
            source = "\n".join(["#include <mpi.h>", "#include <tailrace/tailrace.hpp>", *includes,
                                DECLARATIONS[name], "int main() {", *body, "}"])
        (tmp_path / f"{number}.cpp").write_text(source)
        done = subprocess.run(
            [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
             "-DOMPI_SKIP_MPICXX", f"-I{ROOT / 'include'}", *flags.stdout.split(), "-fsyntax-only",
             f"{number}.cpp"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{name}\n{source}\n{done.stderr}"


# --- Fortran: compiled, linked and run, in one folder ---------------------------------------------

@pytest.mark.parametrize("name", pages_with("fortran"))
def test_fortran_runs(name, tmp_path):
    compiler = shutil.which("mpifort")
    library = build_folder() / "lib" / "libtailrace_fortran.so"
    if compiler is None or not library.exists():
        pytest.skip("the module is not built, or there is no mpifort")
    for number, text in enumerate(to_run(name, "fortran")):
        source = tmp_path / f"program{number}.f90"
        source.write_text(text)
        subprocess.run([compiler, "-std=f2018", "-Wall", "-Werror", source,
                        f"-I{build_folder() / 'fortran'}", f"-L{library.parent}",
                        "-ltailrace_fortran", "-ltailrace", f"-Wl,-rpath,{library.parent}",
                        "-o", source.with_suffix("")], check=True, cwd=tmp_path, timeout=600)
        ranks = "2" if "MPI_Init" in text else "1"
        subprocess.run([launcher(), "-n", ranks, source.with_suffix("")],
                       check=True, cwd=tmp_path, timeout=600, env=ENVIRONMENT)


# --- Python: a page's blocks in one process, from the top of the page to its end ------------------

def names_of_codecs(number, _):
    u, v = smooth((64, 64, 64), 1), smooth((64, 64, 64), 2)
    return {"file": h5py.File(f"h5py_{number}.h5", "w"), "u": u, "v": v}


def names_of_read(number, _):
    if number == 0:
        small_file(pathlib.Path())
    return {}


def names_of_guards(*_):
    grids("run.h5", temperature=(64, 32, 16))
    return {}


def names_of_python(*_):
    """Return `more`, which the page appends along time, once the file to append to exists."""
    import xarray as xr
    if not pathlib.Path("u.nc").exists():
        return {}
    with xr.open_dataset("u.nc", engine="tailrace") as dataset:
        return {"more": dataset.isel(time=slice(0, 2)).load().drop_encoding()}


#: Functions that return the names a page's blocks need; called before each block.
NAMES = {"README.md": lambda *_: {}, "docs/codecs.md": names_of_codecs,
         "docs/guards.md": names_of_guards, "docs/python.md": names_of_python,
         "docs/read.md": names_of_read}


@pytest.mark.parametrize("name", pages_with("python"))
def test_python_runs(name, tmp_path, monkeypatch):
    package = python_package.load()
    for needed in ("xarray", "dask", "matplotlib", "zarr", "fsspec"):
        pytest.importorskip(needed)
    import matplotlib
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {"tailrace": package}
    for number, source in enumerate(to_run(name, "python")):
        if "COMM_WORLD" in source:
            continue  # test_python_runs_on_ranks
        names.update(NAMES[name](number, package))
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            exec(compile(source, f"{name}, {source.splitlines()[0]}", "exec"), names)  # noqa: S102


def test_python_runs_on_ranks(tmp_path):
    pytest.importorskip("mpi4py")
    python_package.load()
    if not list((build_folder() / "lib" / "python").glob("_mpi*.so")):
        pytest.skip("built without MPI")
    found = [source for name in pages_with("python") for source in to_run(name, "python")
             if "COMM_WORLD" in source]
    assert len(found) == 1
    python_package.run(f"import os\nos.chdir({str(tmp_path)!r})\n{found[0]}\n"
                       "assert part.shape == (6, 360)", ranks=2)


# --- shell: by bash, in a folder with the files that the page needs -------------------------------

#: Programs on PnetCDF and on parallel HDF5, for the pages' `./simulation`.
SIMULATIONS = {
    "pnetcdf": """
        #include <mpi.h>
        #include <pnetcdf.h>
        int main(int argc, char** argv) {
          int file, dim, id, rank, n_ranks;
          static float values[1 << 16] = {1, 2, 3};
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
          if (ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER, MPI_INFO_NULL, &file)) return 1;
          ncmpi_def_dim(file, "x", n_ranks << 16, &dim);
          ncmpi_def_var(file, "temp", NC_FLOAT, 1, &dim, &id);
          ncmpi_enddef(file);
          MPI_Offset start = rank << 16, count = 1 << 16;
          if (ncmpi_put_vara_float_all(file, id, &start, &count, values)) return 1;
          if (ncmpi_close(file)) return 1;
          MPI_Finalize();
          return 0;
        }""",
    "hdf5": """
        #include <hdf5.h>
        #include <mpi.h>
        int main(int argc, char** argv) {
          int rank, n_ranks;
          static float values[1 << 16] = {1, 2, 3};
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
          hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
          H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
          H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
          hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
          hsize_t all = n_ranks << 16, start = rank << 16, count = 1 << 16;
          hid_t space = H5Screate_simple(1, &all, NULL), part = H5Screate_simple(1, &count, NULL);
          hid_t set = H5Dcreate2(file, "density", H5T_NATIVE_FLOAT, space, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT);
          H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
          if (H5Dwrite(set, H5T_NATIVE_FLOAT, part, space, transfer, values) < 0) return 1;
          H5Dclose(set);
          if (H5Fclose(file) < 0) return 1;
          MPI_Finalize();
          return 0;
        }""",
}
READER_IN_C = """
#include <hdf5.h>
#include <tailrace/tailrace_filters.h>
int main(void) {
  return tailrace_register_filters() == TAILRACE_FILTERS_OK && H5Zfilter_avail(481) > 0 ? 0 : 1;
}
"""
RECORDING = """{"format": "tailrace-iterations", "version": 1, "ranks_per_node": 1, "ranks": [
    {"iterations": [%s]}]}""" % ", ".join(["""
        {"iteration_s": 1.0, "main": [[0, 0.3]], "io": [[0.1, 0.2]],
         "chunks": [[1000000, 100000, 0.05, 0.04]]}"""] * 3)


def grids(path, **fields):
    with h5py.File(path, "w") as file:
        for name, shape in fields.items():
            file["native_fields/" * (name == "baryon_density") + name] = smooth(shape)


def small_file(folder):
    """Create small.h5, with coarse views in /density and bit planes in /u."""
    grids(folder / "full.h5", density=(64, 64, 64))
    with h5py.File(folder / "full.h5", "a") as file:
        file["u"] = np.random.default_rng(1).normal(size=(100, 64)).astype("f4")
    tailrace("repack", folder / "full.h5", "-o", folder / "small.h5", "--codec", "trz", "--bound",
             "abs=1e-4", "--field", "density:coarse=2", "--field", "u:refine=4")


def add_table(path):
    with h5py.File(path, "a") as file:
        file["table"] = np.zeros(20000, [("id", "i4"), ("energy", "f8")])


def add_mask(path, shape):
    with h5py.File(path, "a") as file:
        file["mask"] = (smooth(shape) > 0).astype("u1")


def ocean(path, **variables):
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        for name, shape in variables.items():
            for dim, extent in zip(("time", "y", "x"), shape):
                if dim not in file.dimensions:
                    file.createDimension(dim, extent)
            file.createVariable(name, "f4", ("time", "y", "x"))[:] = smooth(shape)


def rows(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("run/event", data=np.arange(300), maxshape=(None,), chunks=(128,))


def inputs_of_concat(folder):
    for number in range(3):
        rows(folder / f"subrun_{430 + number:04}.h5")
    for month in (1, 2):
        with netCDF4.Dataset(folder / f"month_{month:02}.nc", "w") as file:
            file.createDimension("time")
            file.createDimension("lat", 5)
            file.createVariable("lat", "f8", ("lat",))[:] = np.arange(5)
            file.createVariable("tas", "f4", ("time", "lat"))[:] = smooth((30, 5))
    for tile in range(4):
        start = 5 * tile
        with netCDF4.Dataset(folder / f"ocean.nc.{tile:04}", "w") as file:
            file.createDimension("x", 5)
            x = file.createVariable("x", "f8", ("x",))
            x[:] = np.arange(start, start + 5)
            x.domain_decomposition = np.int32([1, 20, start + 1, start + 5])
            file.createVariable("sst", "f4", ("x",))[:] = np.arange(start, start + 5)
        with netCDF4.Dataset(folder / f"tile_{tile}.nc", "w") as file:
            for name, first in [("eta_rho", tile // 2), ("xi_rho", tile % 2)]:
                file.createDimension(name, 3)
                file.createVariable(name, "f8", (name,))[:] = 3 * first + np.arange(3)
            file.createVariable("zeta", "f4", ("eta_rho", "xi_rho"))[:] = smooth((3, 3))
    (folder / "list.txt").write_text("subrun_0430.h5\nsubrun_0432.h5\n")


def simulation(kind, folder):
    source = folder / "simulation.c"
    source.write_text(SIMULATIONS[kind])
    words = {"pnetcdf": "-lpnetcdf", "hdf5": "$(pkg-config --cflags --libs hdf5-openmpi)"}[kind]
    done = subprocess.run(["bash", "-c", f"mpicc simulation.c {words} -o simulation"], cwd=folder,
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"no program on {kind} can be made here: {done.stderr[:200]}")
    shutil.copy(folder / "simulation", folder / "analysis")


#: Functions that create the files which a page's commands need in their folder.
FILES = {
    "docs/architecture.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "docs/cli.md": lambda folder: None,
    "docs/codecs.md": lambda folder: (
        grids(folder / "in.h5", u=(32, 32, 32)), grids(folder / "step_090.h5", density=(64,) * 3),
        grids(folder / "step_091.h5", density=(64,) * 3)),
    "docs/concat.md": inputs_of_concat,
    "lab/errata.md": lambda folder: None,
    "docs/facility.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "docs/format.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "docs/reliability.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "docs/layouts.md": lambda folder: grids(folder / "run.h5", density=(32, 32, 32)),
    "docs/nodes.md": lambda folder: grids(folder / "run.h5", density=(32, 32, 32)),
    "docs/guards.md": lambda folder: (
        grids(folder / "run.h5", temperature=(64, 32, 16), velocity=(16, 16, 16)),
        add_mask(folder / "run.h5", (64, 32, 16))),
    "docs/install.md": lambda folder: None,
    "docs/hdf5.md": lambda folder: (
        simulation("hdf5", folder), write_plotfile(folder / "plt00100.h5", "equal")),
    "docs/in-situ.md": lambda folder: simulation("hdf5", folder),
    "docs/netcdf.md": lambda folder: grids(folder / "run.h5", temp=(8, 16, 32)),
    "docs/options.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "docs/pnetcdf.md": lambda folder: simulation("pnetcdf", folder),
    "docs/read.md": small_file,
    "docs/publish.md": lambda folder: (
        ocean(folder / "ocean.nc", theta=(8, 30, 40)), grids(folder / "run.h5", temp=(8, 16, 32)),
        ocean(folder / "tas.nc", tas=(8, 30, 40)), (folder / "published").mkdir(),
        smooth((100, 64, 64)).tofile(folder / "u.bin")),
    "docs/readers.md": lambda folder: (
        (folder / "read.c").write_text(READER_IN_C),
        grids(folder / "run.vtkhdf", temperature=(32, 32, 32)),
        tailrace("repack", folder / "run.vtkhdf", "-o", folder / "small.h5", "--codec", "trz",
                 "--bound", "rel=1e-3", "--roles", "off")),
    "docs/repack.md": lambda folder: (
        ocean(folder / "snapshot.nc", temperature=(8, 30, 40)),
        ocean(folder / "tas.nc", tas=(8, 30, 40)),
        grids(folder / "run.h5", temperature=(32, 32), salinity=(32, 32), velocity=(16, 16, 16)),
        add_table(folder / "run.h5"), grids(folder / "exact.h5", u=(16, 16)),
        grids(folder / "other.h5", u=(16, 16))),
    "docs/decisions.md": lambda folder: grids(folder / "run.h5", u=(32, 32, 32)),
    "lab/simulate/README.md": lambda folder: (
        (folder / "run.json").write_text(RECORDING),
        tailrace("profile", "--time", "1", "--largest", "1MiB", "--codecs", "none,trz",
                 "--dir", folder, "-o", folder / "machine.json")),
}
#: Smaller values of options that replace the page's, so that commands run for a short time. Forms
#: with an option of ENOUGH are short anyway.
SMALLER = {"mpiexec": {"-n": "2"}, "profile": {"--time": "1", "--largest": "1MiB"},
           "simulate": {"--ranks": "4", "--iterations": "1", "--chunk": "64MiB",
                        "--search-operations": "1000"}}
ENOUGH = {"--show", "--recording"}
#: Wrapper of mpiexec and tailrace for the shell, which replaces options by those of SMALLER.
WRAPPER = """#!{python}
import os, sys
name, words = {name!r}, sys.argv[1:]
ours = name.startswith("tailrace")
smaller = {smaller!r}.get(words[0] if ours and words else name, {{}})
if not {enough!r} & set(words):
    for option, value in smaller.items():
        if option in words:
            words[words.index(option) + 1] = value
        elif ours:
            words += [option, value]
os.execv({program!r}, [{program!r}, *words])
"""


def shell_environment(folder):
    """Return an environment with our wrappers first in PATH, in which programs find the build."""
    library = build_folder() / "lib"
    (folder / "bin").mkdir()
    for name, path in (("mpiexec", launcher()), ("tailrace", program()),
                       ("tailrace-lab", lab_program())):
        script = folder / "bin" / name
        script.write_text(WRAPPER.format(python=sys.executable, name=name, smaller=SMALLER,
                                         enough=ENOUGH, program=path))
        script.chmod(0o755)
    plugins = [str(library / "hdf5" / "plugin"), ENVIRONMENT["HDF5_PLUGIN_PATH"]]
    return {**ENVIRONMENT, "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
            "HDF5_PLUGIN_PATH": os.pathsep.join(plugins), "LIBRARY_PATH": str(library),
            "PREFIX": str(build_folder()), "CPATH": str(ROOT / "include"),
            "OMPI_MCA_hwloc_base_binding_policy": "none"}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.full if name in FULL_PAGES else [])
    for name in pages_with("sh")])
def test_shell_runs(name, tmp_path):
    FILES[name](tmp_path)
    environment = shell_environment(tmp_path)
    for source in to_run(name, "sh"):
        source = source.replace("/opt/tailrace", str(build_folder()))
        source = source.replace("/scratch/me", ".")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", source], cwd=tmp_path,
                              capture_output=True, text=True, timeout=600, env=environment)
        assert done.returncode == 0, f"{source}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    if "./simulation" in "".join(to_run(name, "sh")):
        was_served(tmp_path)


def was_served(folder):
    """Check that our library wrote the program's values with a filter. @returns its number."""
    (output,) = [path for name in ("out.nc", "out.h5") if (path := folder / name).exists()]
    (field,) = numbers("info", output)["fields"]
    name = {".nc": "/temp", ".h5": "/density"}[output.suffix]
    assert field["path"] == name and field["filters"]
    tailrace("export", output, "-o", folder / "values.npy", "--only", name, "--force")
    values = np.load(folder / "values.npy")
    expected = np.zeros(values.size // (1 << 16) * (1 << 16))
    expected.reshape(-1, 1 << 16)[:, :3] = [1, 2, 3]
    assert values.size > 0 and abs(values - expected).max() <= 1e-3
    return field["filters"][0]["id"]


@pytest.mark.parametrize("kind, language, number", [("pnetcdf", "text", 0), ("hdf5", "sh", -3)])
def test_options_of_pages_are_taken(kind, language, number, tmp_path):
    """Options that a page shows without a command must work in a run, from a file."""
    simulation(kind, tmp_path)
    options = [source for found, source in blocks_of(ROOT / "docs" / f"{kind}.md")
               if found == language and not source.startswith("mpiexec")][number]
    options = re.sub(r"^TAILRACE_OPTIONS='(.*)'$", r"\1", options.strip(), flags=re.DOTALL)
    assert "=" in options and "'" not in options
    (tmp_path / "options.txt").write_text(options)
    library = build_folder() / "lib" / f"libtailrace_{kind}.so"
    done = subprocess.run([launcher(), "-n", "2", "env", f"LD_PRELOAD={library}",
                           f"TAILRACE_OPTIONS=@{tmp_path / 'options.txt'}", "./simulation"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=600,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert was_served(tmp_path) == 481 or kind == "hdf5"
    # The only remarks are about options that match no variable of this program.
    told = [line for line in done.stderr.splitlines() if "tailrace" in line.lower()]
    assert all("component:" in line or "/mask" in line for line in told), told
