"""Doors: what each can do, and how its performer is started.

A door names a performer (performer.py, or a program in another language that speaks its protocol)
and states what it supports. The generator makes programs of nothing else.
"""

import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass

FLOATS = ("f4", "f8")
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
#: What each codec serves: types, bounds, numbers of dimensions.
EXACT_CODECS = ("none", "deflate", "xor", "zstd", "lz4", "bzip2", "blosc", "blosc2", "bitshuffle")
LOSSY_CODECS = {
    "trz": (FLOATS + INTEGERS, ("abs", "rel", "psnr", "pw_rel", "none"), range(0, 9)),
    "portable": (FLOATS + INTEGERS, ("abs", "rel", "psnr", "pw_rel"), range(0, 9)),
    "sz3": (FLOATS, ("abs", "rel", "psnr"), range(1, 5)),
    "zfp": (FLOATS, ("abs", "rel", "psnr"), range(1, 5)),
    "sperr": (FLOATS, ("abs", "rel", "psnr"), range(2, 4)),
    "": (FLOATS, ("abs", "rel", "psnr", "pw_rel"), range(0, 9)),  # The engine chooses.
}


@dataclass(frozen=True)
class Traits:
    """What a door supports; the generator asks for it."""

    dtypes: tuple = FLOATS + INTEGERS
    exact_codecs: tuple = EXACT_CODECS
    lossy_codecs: tuple = tuple(LOSSY_CODECS)
    lossy_dtypes: tuple = FLOATS + INTEGERS
    bounds: tuple = ("abs", "rel", "psnr", "pw_rel", "none")
    ops: tuple = ("abort", "get", "attr", "delattr", "append", "exclusive")
    ranks: tuple = (1,)
    layouts: tuple = ("claimed", "dense", "arena", "predictive", "sparse",
                      "hybrid,expected-ratio=3")
    file_options: tuple = ("threads=1", "threads=2", "journal=on", "memory=16MiB", "align=512",
                           "buffer=64KiB", "attributes=all", "for=size", "fsync=on")
    settings: bool = True  # Codecs' own.
    growing: bool = True  # Unlimited dimensions.
    faults: tuple = ()


class Died(Exception):
    """The performer ended in the midst of an operation."""

    def __init__(self, what, text=""):
        super().__init__(f"{what} {text}".strip())
        self.what = what


class Door:
    """One performer process, or one job of several ranks, for many programs."""

    #: Seconds for one operation: for hangs alone.
    TIME_LIMIT_S = 60

    def __init__(self, name, ranks=1, programs_folder=""):
        self.name, self.ranks, self.programs_folder = name, ranks, programs_folder
        self._process = self._socket = self._lines = None
        self._n_requests = 0
        self._folder = tempfile.mkdtemp(prefix="workload_")
        self._log = pathlib.Path(self._folder) / "log"

    @classmethod
    def missing(cls):
        """What this machine lacks of the door, in words."""
        return ""

    def command(self):
        return [sys.executable, "-m", "workload.performer", self.PERFORMER]

    def environment(self):
        return dict(os.environ)

    def start(self):
        path = os.path.join(self._folder, "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(1)
            listening.settimeout(self.TIME_LIMIT_S)
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**self.environment(), "TAILRACE_WORKLOAD_SOCKET": path})
            try:
                self._socket, _ = listening.accept()
            except socket.timeout:
                self.stop()
                raise Died("does not start", self.said()) from None
            finally:
                os.unlink(path)
        self._socket.settimeout(self.TIME_LIMIT_S)
        self._lines = self._socket.makefile("rb")

    @property
    def is_running(self):
        return self._process is not None

    def said(self):
        """The end of what the performer has printed."""
        return self._log.read_text(errors="replace")[-1500:] if self._log.exists() else ""

    def do(self, op):
        """Perform one operation. @returns the answer; Died if there is none."""
        if self._process is None:
            self.start()
        self._n_requests += 1
        answer = {}
        try:
            self._socket.sendall(json.dumps({**op, "id": self._n_requests}).encode() + b"\n")
            # A program's process may have died before the request; then its parent answers that.
            while answer.get("id") != self._n_requests and answer.get("error") != "Died":
                line = self._lines.readline()
                if not line:
                    break
                answer = json.loads(line)
        except socket.timeout:
            said = self.said()
            self.stop()
            raise Died("hangs", said) from None
        except OSError:
            line = b""
        if not line:
            code = self._process.wait(self.TIME_LIMIT_S)
            said = self.said()
            self.stop()
            raise Died(signal.Signals(-code).name if code < 0 else f"exit {code}", said)
        if answer.get("error") == "Died":
            raise Died(answer["text"])
        return answer

    def stop(self):
        """End the performer, and all of its ranks."""
        if self._process is None:
            return
        if self._socket is not None:
            self._lines.close()
            self._socket.close()
        try:
            self._process.wait(10 if self._socket is not None else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = self._socket = None

    def end(self):
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class ArrayDoor(Door):
    """tailrace.open in one process."""

    PERFORMER = "array"
    TRAITS = Traits()


class KilledDoor(ArrayDoor):
    """The same, in a process of each program's own, which dies at one of its calls on files."""

    TRAITS = Traits(faults=("kill",))

    def environment(self):
        return {**os.environ, "LD_PRELOAD": str(recorder()),
                "CAMPAIGN_FOLDER": self.programs_folder,
                "CAMPAIGN_LOG": os.path.join(self._folder, "calls")}

    def do(self, op):
        if op["op"] == "begin":
            with contextlib.suppress(FileNotFoundError):
                os.truncate(os.path.join(self._folder, "calls"), 0)
        return super().do(op)

    @classmethod
    def missing(cls):
        return "" if recorder().exists() else f"{recorder()} is not built"


class ArrayRanksDoor(Door):
    """tailrace.open on the ranks of a communicator."""

    PERFORMER = "array"
    TRAITS = Traits(ranks=(2, 3), exact_codecs=("none", "deflate", "xor", "zstd"),
                    lossy_codecs=("trz", "portable", "zfp", ""))

    @classmethod
    def missing(cls):
        if shutil.which("mpiexec") is None:
            return "no mpiexec"
        built = list(library("python").glob("_mpi*.so"))
        return "" if built and importlib.util.find_spec("mpi4py") else "no MPI for Python"

    def command(self):
        return ["mpiexec", "-n", str(self.ranks), *super().command(), "ranks"]

    def environment(self):
        return {**os.environ, **mpi_environment(self._folder)}


class SerialHdf5Door(Door):
    """An h5py program on the system's serial HDF5, with libtailrace_hdf5_serial.so preloaded."""

    PERFORMER = "hdf5"
    LIBRARY = "libtailrace_hdf5_serial.so"
    # The chunks that a call completes are encoded at once, by the range that is known until then:
    # rel and psnr bounds are another matter than elsewhere.
    TRAITS = Traits(exact_codecs=("gzip", "gzip", "none"), lossy_codecs=("trz", "portable", ""),
                    lossy_dtypes=FLOATS, bounds=("abs", "pw_rel"), layouts=(), file_options=(),
                    ops=("get", "attr", "delattr", "append", "exclusive"))

    def command(self):
        return ["/usr/bin/python3", "-m", "workload.performer", self.PERFORMER]

    def environment(self):
        clean = {key: value for key, value in os.environ.items()
                 if key not in ("PYTHONHOME", "TAILRACE_OPTIONS", "HDF5_PLUGIN_PATH")}
        # Readers look at the file while the program has it open, which HDF5's locks forbid.
        return {**clean, "LD_PRELOAD": str(library(self.LIBRARY)),
                "HDF5_USE_FILE_LOCKING": "FALSE",
                "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])}

    @classmethod
    def missing(cls):
        if not library(cls.LIBRARY).exists():
            return f"{cls.LIBRARY} is not built"
        asked = subprocess.run(["/usr/bin/python3", "-c", "import h5py._debian_h5py_serial"],
                               capture_output=True, check=False)
        return "" if asked.returncode == 0 else "no h5py on the system's HDF5 (python3-h5py)"


class ParallelHdf5Door(SerialHdf5Door):
    """An h5py program on the system's parallel HDF5, with libtailrace_hdf5.so preloaded."""

    LIBRARY = "libtailrace_hdf5.so"
    TRAITS = dataclasses.replace(SerialHdf5Door.TRAITS, ranks=(1, 2, 3),
                                 bounds=("abs", "pw_rel", "none"))

    def command(self):
        return ["mpiexec", "-n", str(self.ranks), "env", f"LD_PRELOAD={library(self.LIBRARY)}",
                *super().command(), "ranks"]

    def environment(self):
        return {name: value for name, value in {
            **super().environment(), **mpi_environment(self._folder)}.items()
            if name != "LD_PRELOAD"}

    @classmethod
    def missing(cls):
        if not library(cls.LIBRARY).exists() or shutil.which("mpiexec") is None:
            return f"no mpiexec, or {cls.LIBRARY} is not built"
        asked = subprocess.run(["/usr/bin/python3", "-c", "import h5py._debian_h5py_mpi, mpi4py"],
                               capture_output=True, check=False, env={
                                   name: value for name, value in os.environ.items()
                                   if name not in ("PYTHONPATH", "PYTHONHOME")})
        return "" if asked.returncode == 0 else "no h5py on parallel HDF5 (python3-h5py-mpi)"


def mpi_environment(folder):
    """More ranks than cores, as root, and what mpiexec keeps in the folder."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_orte_tmpdir_base": folder,
            "PRTE_MCA_prte_tmpdir_base": folder}


def library(name):
    built = os.environ.get("TAILRACE_WORKLOAD_BUILD")
    folder = pathlib.Path(built) if built else pathlib.Path(os.environ["TAILRACE"]).parents[1]
    return folder / "lib" / name


def recorder():
    return library("libcampaign_recorder.so")


DOORS = {"array": ArrayDoor, "array-mpi": ArrayRanksDoor, "serial": SerialHdf5Door,
         "hdf5-mpi": ParallelHdf5Door, "array-kill": KilledDoor}
