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
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from .language import key_shape, positions, values_of
from .performing import option_words

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
    records: bool = False  # One of them in a file, the first of its variables.
    groups: bool = True
    steps: bool = False  # Of fields, as in tailrace.h: put whole, each element once in a step.
    attribute_types: tuple = ("text", "i4", "f8", "u1", "i8", "f4")
    hows: tuple = ()  # Ways of a put: language.py, "how".
    clock: bool = False  # Of puts of several ranks the later stays, where no call orders them, too.
    commits_early: bool = False  # Also before a get, and before a put with "how" independent.
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

    def request(self, op):
        """The line that the performer gets."""
        return json.dumps({**op, "id": self._n_requests})

    def do(self, op):
        """Perform one operation. @returns the answer; Died if there is none."""
        if self._process is None:
            self.start()
        self._n_requests += 1
        answer = {}
        try:
            self._socket.sendall(self.request(op).encode() + b"\n")
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
                                 bounds=("abs", "pw_rel", "none"),
                                 hows=("", "", "collective"), clock=True)

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


class ConnectorDoor(ParallelHdf5Door):
    """A program on an HDF5 1.14 of its own (hdf5_calls.py), served by our VOL connector."""

    PERFORMER = "hdf5-calls"

    @staticmethod
    def hdf5():
        """What is preloaded, and the connector: of the build's first HDF5 that has one."""
        cache = (library("").parent / "CMakeCache.txt").read_text()
        roots = re.search(r"TAILRACE_HDF5_PROGRAMS_ROOT:\w+=(.*)", cache)
        for root in roots[1].split(";") if roots and roots[1] else ():
            for connector in library("hdf5").glob("vol-*/libtailrace_vol-1.14.so"):
                for hdf5 in pathlib.Path(root).glob("lib*/libhdf5.so"):
                    return hdf5, connector
        return None

    @classmethod
    def missing(cls):
        if shutil.which("mpiexec") is None or not importlib.util.find_spec("mpi4py"):
            return "no MPI for Python"
        return "" if cls.hdf5() else "no VOL connector for an HDF5 1.14 of a program's own"

    def command(self):
        hdf5, connector = self.hdf5()
        return ["mpiexec", "-n", str(self.ranks), "env", f"LD_PRELOAD={hdf5}",
                "HDF5_VOL_CONNECTOR=tailrace", f"HDF5_PLUGIN_PATH={connector.parent}",
                sys.executable, "-m", "workload.performer", self.PERFORMER, "ranks"]


class PnetcdfDoor(ArrayRanksDoor):
    """A program on PnetCDF, with libtailrace_pnetcdf.so preloaded."""

    PERFORMER = "pnetcdf"
    LIBRARY = "libtailrace_pnetcdf.so"
    TRAITS = dataclasses.replace(
        ArrayRanksDoor.TRAITS, ranks=(1, 2, 3), records=True, groups=False,
        ops=("get", "attr", "delattr", "append", "exclusive"),
        hows=("collective", "independent", "nonblocking"), commits_early=True)

    @classmethod
    def missing(cls):
        if not library(cls.LIBRARY).exists():
            return f"{cls.LIBRARY} is not built"
        return super().missing()

    def command(self):
        words = super().command()
        return [*words[:3], "env", f"LD_PRELOAD={library(self.LIBRARY)}", *words[3:]]


class StepsDoor(Door):
    """The C++ API: workload_writer.cpp, on the ranks of a communicator."""

    TRAITS = Traits(
        ranks=(1, 2, 3, 4), steps=True, growing=False, ops=("abort", "attr", "append"),
        attribute_types=("text", "i8", "f8", "u8"),
        exact_codecs=("none", "deflate", "deflate", "xor", "zstd", "bitshuffle"),
        file_options=("threads=1", "threads=2", "journal=on", "memory=16MiB", "align=512",
                      "buffer=64KiB", "order=largest-first", "order=johnson", "writers=node",
                      "for=size", "mode=async", "mode=async", "mode=async,hold=promise",
                      "mode=in_situ", "mode=in_situ", "mode=in_situ,hold=promise",
                      "mode=in_situ,balance=off", "mode=async,writers=node", "fsync=on"))

    @staticmethod
    def program():
        return library("").parent / "bin" / "workload_writer"

    @classmethod
    def missing(cls):
        if not cls.program().exists() or shutil.which("mpiexec") is None:
            return f"no mpiexec, or {cls.program()} is not built"
        return ""

    def command(self):
        return ["mpiexec", "-n", str(self.ranks), str(self.program())]

    def environment(self):
        return {**os.environ, **mpi_environment(self._folder)}

    def do(self, op):
        if op["op"] == "begin":
            self._dims, self._variables = {}, {}
        if op["op"] == "dim":
            self._dims[op["name"]] = op["size"]
            return {"ok": True}
        return super().do(op)

    def request(self, op):
        words = [self._n_requests, op["op"]]
        if op["op"] == "begin":
            words.append(op["path"])
        elif op["op"] == "open":
            words += [op["mode"], op.get("options") or "-"]
        elif op["op"] == "var":
            words += self._definition(op)
        elif op["op"] == "put":
            words += self._boxes(op)
        elif op["op"] == "attr":
            words += ["/" + op["of"], op["name"]]
            if isinstance(op["value"], str):
                words += ["text", op["value"].encode().hex() or "-"]
            else:
                words += [op["value"][0], *map(repr, op["value"][1])]
        return " ".join(map(str, words))

    def _definition(self, op):
        self._variables[op["name"]] = op
        grows = bool(op.get("over_time"))
        words = option_words({**op, "chunks": (op.get("chunks") or [])[grows:]})
        words += ["over-time=on"] if grows else []
        words += [f"fill={op['fill']}"] if op.get("fill") is not None else []
        return ["/" + op["name"], op["dtype"], ",".join(words) or "-",
                *(self._dims[name] for name in op["dims"][grows:])]

    def _boxes(self, op):
        var = self._variables[op["name"]]
        key = op["key"][bool(var.get("over_time")):]
        at = [positions(part) for part in key]
        values = values_of(op["values"], var["dtype"], key_shape(op["key"]), var.get("fill"))
        return ["/" + op["name"], op.get("rank", 0), op.get("style") or "-", len(key),
                *(part[0] for part in at), *(len(part) for part in at), values.tobytes().hex()]


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
         "hdf5-mpi": ParallelHdf5Door, "array-kill": KilledDoor, "pnetcdf": PnetcdfDoor,
         "steps": StepsDoor, "vol": ConnectorDoor}
