"""The readers of the reader matrix: their installation, their command, and their features."""

import os
import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDER = ROOT / "build" / "readers-matrix"
REQUIREMENTS = ROOT / "requirements-matrix.txt"
VENV = FOLDER / "venv" / "bin" / "python"
DEBIAN_PYTHON = "/usr/bin/python3"
DEBIAN_PACKAGES = ["python3-h5py-mpi", "python3-h5py-serial", "hdf5-tools", "netcdf-bin",
                   "python3-gdal", "octave", "r-base-core", "r-bioc-rhdf5", "r-cran-hdf5r",
                   "r-cran-bit64", "r-cran-ncdf4", "r-cran-jsonlite"]
POMS = {"jhdf": "ReadJhdf", "netcdf": "ReadNetcdfJava"}


@dataclass
class Reader:
    """A column. `text`, `attributes`, `groups`: False if the reader's interface lacks them."""

    name: str
    family: str  # "HDF5": based on the HDF5 library; "own": an independent implementation.
    command: list
    text: bool = True
    attributes: bool = True
    groups: bool = True
    netcdf_only: bool = False
    minimum_rank: int = 0
    note: str = ""
    environment: dict = field(default_factory=dict)
    why_not: str = ""  # The reason why a reader is unavailable here.

    def version(self):
        """The reader's version. Raises RuntimeError with the reason if it does not run."""
        if self.why_not:
            raise RuntimeError(self.why_not)
        try:
            done = self.start(["--version"], 120)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(str(error)) from error
        if done.returncode != 0 or not done.stdout.strip():
            said = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
            raise RuntimeError(said[:120])
        return done.stdout.strip().splitlines()[-1]

    def start(self, words, timeout_s):
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("HDF5_PLUGIN_PATH", "PYTHONPATH", "LD_PRELOAD")}
        environment |= {"READER_MATRIX_NODE": str(FOLDER / "node"), "PYTHONWARNINGS": "ignore",
                        "READER_MATRIX_SCRIPTS": str(HERE / "r"), **self.environment}
        return subprocess.run([*map(str, self.command), *map(str, words)], capture_output=True,
                              text=True, errors="replace", env=environment, timeout=timeout_s,
                              stdin=subprocess.DEVNULL)


def python(script, *words, of=VENV):
    return [of, HERE / f"{script}.py", *words]


def java(name):
    folder = FOLDER / "java" / name
    return ["java", "-cp", f"{folder}/lib/*:{folder}", POMS[name]]


def r(script):
    return ["Rscript", "--vanilla", HERE / "r" / f"{script}.R"]


READERS = [
    Reader("h5py, Debian", "HDF5", python("read_h5py", of=DEBIAN_PYTHON)),
    Reader("h5py", "HDF5", python("read_h5py")),
    Reader("h5py, plug-ins", "HDF5", python("read_h5py", "--plugins"),
           note="with hdf5plugin and `libh5trz.so`, `libh5xor.so`"),
    Reader("h5dump", "HDF5", python("read_h5dump", of=DEBIAN_PYTHON)),
    Reader("netCDF4", "HDF5", python("read_netcdf4")),
    Reader("ncdump", "HDF5", python("read_ncdump", of=DEBIAN_PYTHON)),
    Reader("xarray, netcdf4", "HDF5", python("read_xarray", "netcdf4")),
    Reader("xarray, h5netcdf", "HDF5", python("read_xarray", "h5netcdf")),
    Reader("GDAL", "HDF5", python("read_gdal", of=DEBIAN_PYTHON),
           note="multidimensional arrays"),
    Reader("VTK", "HDF5", python("read_vtk"), text=False, attributes=False, groups=False,
           netcdf_only=True, minimum_rank=2,
           note="netCDF: numbers of two and more dimensions, root group, no attributes"),
    Reader("rhdf5", "HDF5", r("read_rhdf5"), note="R, Bioconductor"),
    Reader("hdf5r", "HDF5", r("read_hdf5r"), note="R, CRAN"),
    Reader("ncdf4", "HDF5", r("read_ncdf4"), note="R, CRAN"),
    Reader("Octave", "HDF5", ["octave-cli", "--no-gui", "--quiet", HERE / "read_octave.m"],
           text=False, attributes=False, note="`load -hdf5`: numbers, no attributes"),
    Reader("h5wasm", "HDF5", ["node", HERE / "node" / "read_h5wasm.mjs"]),
    Reader("kerchunk", "own", python("read_kerchunk"), note="references read by zarr"),
    Reader("VirtualiZarr", "own", python("read_virtualizarr"), text=False,
           note="manifests read by zarr; numbers"),
    Reader("pyfive", "own", python("read_pyfive")),
    Reader("netCDF-Java", "own", java("netcdf"), note="4.5.5 is the newest of Maven Central"),
    Reader("jhdf", "own", java("jhdf")),
    Reader("jsfive", "own", ["node", HERE / "node" / "read_jsfive.mjs"]),
    Reader("hdf5-reader", "own", [FOLDER / "rust/target/release/read_hdf5_reader"], note="Rust"),
    Reader("hdf5-pure", "own", [FOLDER / "rust/target/release/read_hdf5_pure"], note="Rust"),
    Reader("PureHDF", "own", [], why_not="needs .NET and NuGet"),
    Reader("HDF5.jl, JLD2", "own", [], why_not="need Julia and its registry"),
    Reader("scigolib/hdf5", "own", [], why_not="Go: the module proxy does not have it"),
]


# --- set-up ---------------------------------------------------------------------------------------

def call(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RuntimeError((lines or [f"exit {done.returncode}"])[-1][:200])


def fresh(source, stamp):
    return stamp.exists() and stamp.read_text() == source


def set_up_python():
    wanted = REQUIREMENTS.read_text()
    stamp = FOLDER / "venv" / ".installed"
    if not fresh(wanted, stamp):
        call(DEBIAN_PYTHON, "-m", "venv", FOLDER / "venv")
        call(VENV, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
             REQUIREMENTS)
        stamp.write_text(wanted)


def set_up_node():
    folder = FOLDER / "node"
    source = HERE / "node" / "package.json"
    stamp = folder / ".installed"
    if not fresh(source.read_text(), stamp):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder)
        call("npm", "install", "--silent", "--no-audit", "--no-fund", cwd=folder)
        stamp.write_text(source.read_text())


def set_up_java():
    for name, script in POMS.items():
        folder = FOLDER / "java" / name
        pom = HERE / "java" / f"pom-{name}.xml"
        sources = [HERE / "java" / "Line.java", HERE / "java" / f"{script}.java"]
        text = "".join(each.read_text() for each in [pom, *sources])
        if not fresh(text, folder / ".installed"):
            folder.mkdir(parents=True, exist_ok=True)
            call("mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies",
                 f"-DoutputDirectory={folder / 'lib'}")
            call("javac", "-nowarn", "-cp", f"{folder}/lib/*", "-d", folder, *sources)
            (folder / ".installed").write_text(text)


def set_up_rust():
    folder = FOLDER / "rust"
    sources = sorted(each for each in (HERE / "rust").rglob("*") if each.suffix in (".rs", ".toml"))
    text = "".join(each.read_text() for each in sources)
    if not fresh(text, folder / ".installed"):
        for each in sources:
            copy = folder / each.relative_to(HERE / "rust")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(each, copy)
        call("cargo", "build", "--release", "--quiet", "--target-dir", folder / "target",
             cwd=folder)
        (folder / ".installed").write_text(text)


def set_up_debian():
    listed = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n",
                             *DEBIAN_PACKAGES], capture_output=True, text=True).stdout
    there = re.findall(r"^(\S+) installed$", listed, re.M)
    missing = [name for name in DEBIAN_PACKAGES if name not in there]
    if missing:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        call("apt-get", "update", "-qq", env=quiet)
        call("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, env=quiet)


def set_up():
    """Install missing parts; return the number of parts that could not be installed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    n_failed = 0
    for name, part in (("Debian's packages", set_up_debian), ("Python's packages", set_up_python),
                       ("npm's packages", set_up_node), ("Maven's artifacts", set_up_java),
                       ("Rust's crates", set_up_rust)):
        try:
            part()
            print(f"reader-matrix: {name}: installed", flush=True)
        except (OSError, RuntimeError) as error:
            n_failed += 1
            print(f"reader-matrix: {name}: not installed: {error}", flush=True)
    return n_failed
