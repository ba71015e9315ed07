"""Doors: the interfaces under test, their capabilities, and how their performers are started.

A door names a performer and states what it supports. A performer is performer.py, or a program in
another language that implements its protocol. The generator uses only supported features.
"""

import contextlib
import dataclasses
import errno
import importlib.util
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from .language import key_shape, positions, values_of
from .performing import option_words

FLOATS = ("f4", "f8")
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
#: Capabilities of each codec: types, bounds, numbers of dimensions.
EXACT_CODECS = ("none", "deflate", "xor", "zstd", "lz4", "bzip2", "blosc", "blosc2", "bitshuffle")
LOSSY_CODECS = {
    "trz": (FLOATS + INTEGERS, ("abs", "rel", "psnr", "pw_rel", "none"), range(0, 9)),
    "portable": (FLOATS + INTEGERS, ("abs", "rel", "psnr", "pw_rel"), range(0, 9)),
    "sz3": (FLOATS, ("abs", "rel", "psnr"), range(1, 5)),
    "zfp": (FLOATS, ("abs", "rel", "psnr"), range(1, 5)),
    "sperr": (FLOATS, ("abs", "rel", "psnr"), range(2, 4)),
    "": (FLOATS, ("abs", "rel", "psnr", "pw_rel"), range(0, 9)),  # Tailrace chooses the codec.
}

#: Each kind of fault: which file calls count, what happens to the selected call, and whether later
#: calls fail, too (tests/campaign/recorder.c).
FAULTS = {"kill": ("io", "kill", False), "full": ("write", errno.ENOSPC, True),
          "sync": ("sync", errno.EIO, False), "error": ("io", errno.EIO, False),
          "stop": ("io", "stop", False)}
FAULT_ERRORS = (errno.ENOSPC, errno.EIO)
#: A record of recorder.c: kind, class, rank, error, process, inode, offset, site, length of the
#: data that follows.
_RECORD = struct.Struct("<BBHiQQQQQ")


@dataclass(frozen=True)
class Traits:
    """Features of a door; the generator reads them."""

    dtypes: tuple = FLOATS + INTEGERS
    exact_codecs: tuple = EXACT_CODECS
    lossy_codecs: tuple = tuple(LOSSY_CODECS)
    lossy_dtypes: tuple = FLOATS + INTEGERS
    bounds: tuple = ("abs", "rel", "psnr", "pw_rel", "none")
    ops: tuple = ("abort", "get", "attr", "delattr", "append", "exclusive")
    ranks: tuple = (1,)
    layouts: tuple = ("claimed", "dense", "arena", "predictive", "sparse",
                      "hybrid:3")
    file_options: tuple = ("threads=1", "threads=2", "journal=on", "memory=16MiB", "align=512",
                           "buffer=64KiB", "attributes=all", "for=size", "fsync=on")
    settings: bool = True  # Codec-specific settings.
    growing: bool = True  # Unlimited dimensions.
    records: bool = False  # At most one unlimited dimension, the first of its variables.
    groups: bool = True
    steps: bool = False  # Each step puts each element of a field once (tailrace.h).
    attribute_types: tuple = ("text", "i4", "f8", "u1", "i8", "f4")
    hows: tuple = ()  # Values of "how" of a put (language.py).
    clock: bool = False  # The later of several ranks' unordered puts wins.
    commits_early: bool = False  # Also before a get or an independent put.
    faults: tuple = ()  # Kinds of "fault" (language.py).
    crash_safe: bool = True  # Committed data survive a crash, unlike with plain HDF5.
    reads: bool = False  # Operation "read": all ranks read a closed file together.
    bad_puts: bool = False  # Operation "badput".


class Died(Exception):
    """The performer ended during an operation."""

    def __init__(self, what, text=""):
        super().__init__(f"{what} {text}".strip())
        self.what = what

    @property
    def was_killed(self):
        """True if SIGKILL ended the process or a rank of the job."""
        return self.what in ("SIGKILL", "exit 137")


class Door:
    """One performer process, or one job of several ranks, for many programs."""

    #: Seconds for one operation; exceeded only by hangs.
    TIME_LIMIT_S = 60
    ON_RANKS = False  # Started by mpiexec.
    PYTHON = sys.executable

    def __init__(self, name, ranks=1, programs_folder=""):
        self.name, self.ranks, self.programs_folder = name, ranks, programs_folder
        self._process = self._socket = self._lines = None
        self._n_requests = 0
        self._folder = tempfile.mkdtemp(prefix="workload_")
        self._log = pathlib.Path(self._folder) / "log"
        self._calls = pathlib.Path(self._folder) / "calls"
        self._stops = False

    @classmethod
    def missing(cls):
        """Reason why this machine cannot run the door; empty if it can."""
        if cls.ON_RANKS and shutil.which("mpiexec") is None:
            return "no mpiexec"
        if cls.TRAITS.faults and not recorder().exists():
            return f"{recorder()} is not built"
        return ""

    def command(self):
        preloaded = [*self.preloaded(), *([recorder()] if self.TRAITS.faults else [])]
        words = [f"LD_PRELOAD={':'.join(map(str, preloaded))}"] if preloaded else []
        ranks = ["mpiexec", "-n", str(self.ranks)] if self.ON_RANKS else []
        return [*ranks, "env", *words, *self.performer()]

    def preloaded(self):
        """Libraries for LD_PRELOAD."""
        return []

    def performer(self):
        return [self.PYTHON, "-m", "workload.performer", self.PERFORMER,
                *(["ranks"] if self.ON_RANKS else [])]

    def environment(self):
        words = {**os.environ}
        if self.ON_RANKS:
            words.update(mpi_environment(self._folder))
        if self.TRAITS.faults:
            words.update(CAMPAIGN_FOLDER=self.programs_folder, CAMPAIGN_LOG=str(self._calls))
        return words

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
        """The last characters that the performer printed."""
        return self._log.read_text(errors="replace")[-1500:] if self._log.exists() else ""

    def request(self, op):
        """The request line for the performer."""
        return json.dumps({**op, "id": self._n_requests})

    def do(self, op):
        """Perform one operation. @returns the answer. @raises Died if the performer does not
        answer."""
        if op["op"] == "begin":
            self._stops = (op.get("fault") or {}).get("kind") == "stop"
            with contextlib.suppress(FileNotFoundError):
                os.truncate(self._calls, 0)
        if self._process is None:
            self.start()
        self._n_requests += 1
        answer = {}
        try:
            self._socket.sendall(self.request(op).encode() + b"\n")
            # A program's process may have died before the request; its parent answers that earlier
            # request.
            while answer.get("id") != self._n_requests and answer.get("error") != "Died":
                if self._stops:
                    self._wait_and_continue()
                line = self._lines.readline()
                if not line:
                    break
                answer = json.loads(line)
        except socket.timeout:
            self._hangs()
        except OSError:
            line = b""
        if not line:
            try:
                code = self._process.wait(self.TIME_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._hangs()
            said = self.said()
            self.stop()
            raise Died(signal.Signals(-code).name if code < 0 else f"exit {code}", said)
        if answer.get("error") == "Died":
            raise Died(answer["text"])
        return answer

    def _hangs(self):
        said = self.said()
        self._kill()
        raise Died("hangs", said) from None

    def _wait_and_continue(self):
        """Wait for an answer, and resume ranks that a fault has stopped."""
        for _ in range(20 * self.TIME_LIMIT_S):
            if self._has_answer(0.05):
                return
            stopped = stopped_processes(self._process.pid)
            if stopped:
                self._has_answer(0.5)
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    def _has_answer(self, seconds):
        return bool(select.select([self._socket], [], [], seconds)[0])

    def fault_happened(self):
        """True if the recorder has made a call fail, or has stopped a rank."""
        log = self._calls.read_bytes() if self._calls.exists() else b""
        at = 0
        while at + _RECORD.size <= len(log):
            kind, _, _, error, *_, n_bytes = _RECORD.unpack_from(log, at)
            if kind == ord("z") or error in FAULT_ERRORS:
                return True
            at += _RECORD.size + n_bytes
        return False

    def stop(self):
        """End the performer and all of its ranks."""
        if self._process is None:
            return
        if self._socket is not None:
            self._lines.close()
            self._socket.close()
        try:
            self._process.wait(10 if self._socket is not None else 0)
        except subprocess.TimeoutExpired:
            self._kill()
        self._process = self._socket = None

    def _kill(self):
        """mpiexec's ranks have process groups of their own in its session."""
        for pid in [*processes_of_session(self._process.pid), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        if self._socket is not None:
            self._lines.close()
            self._socket.close()
        self._process = self._socket = None

    def end(self):
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class ArrayDoor(Door):
    """tailrace.open in one process."""

    PERFORMER = "array"
    TRAITS = Traits(bad_puts=True)


class ArrayRanksDoor(Door):
    """tailrace.open on the ranks of a communicator."""

    PERFORMER = "array"
    ON_RANKS = True
    TRAITS = Traits(ranks=(1, 2, 3), exact_codecs=("none", "deflate", "xor", "zstd"),
                    lossy_codecs=("trz", "portable", "zfp", ""), bad_puts=True)

    @classmethod
    def missing(cls):
        built = list(library("python").glob("_mpi*.so"))
        lacks = "" if built and importlib.util.find_spec("mpi4py") else "no MPI for Python"
        return super().missing() or lacks


class SerialHdf5Door(Door):
    """An h5py program on the system's serial HDF5, with libtailrace_hdf5_serial.so preloaded."""

    PERFORMER = "hdf5"
    PYTHON = "/usr/bin/python3"
    LIBRARY = "libtailrace_hdf5_serial.so"
    MODULES = "h5py._debian_h5py_serial"
    # The chunks that a call completes are encoded immediately, by the value range known at that
    # time. Therefore rel and psnr bounds differ from those of other doors.
    TRAITS = Traits(exact_codecs=("gzip", "gzip", "none"), lossy_codecs=("trz", "portable", ""),
                    lossy_dtypes=FLOATS, bounds=("abs", "pw_rel"), layouts=(), file_options=(),
                    ops=("get", "attr", "delattr", "append", "exclusive"), crash_safe=False)

    def preloaded(self):
        return [library(self.LIBRARY)]

    def environment(self):
        clean = {key: value for key, value in super().environment().items()
                 if key not in ("PYTHONHOME", "TAILRACE_OPTIONS", "HDF5_PLUGIN_PATH")}
        # Readers open the file while the program has it open. HDF5's locks would forbid that.
        return {**clean, "HDF5_USE_FILE_LOCKING": "FALSE",
                "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])}

    @classmethod
    def missing(cls):
        if not library(cls.LIBRARY).exists():
            return f"{cls.LIBRARY} is not built"
        asked = subprocess.run([cls.PYTHON, "-c", f"import {cls.MODULES}"],
                               capture_output=True, check=False, env={
                                   name: value for name, value in os.environ.items()
                                   if name not in ("PYTHONPATH", "PYTHONHOME")})
        lacks = "" if asked.returncode == 0 else f"{cls.PYTHON} has no {cls.MODULES}"
        return super().missing() or lacks


class ParallelHdf5Door(SerialHdf5Door):
    """An h5py program on the system's parallel HDF5, with libtailrace_hdf5.so preloaded."""

    ON_RANKS = True
    LIBRARY = "libtailrace_hdf5.so"
    MODULES = "h5py._debian_h5py_mpi, mpi4py"
    TRAITS = dataclasses.replace(SerialHdf5Door.TRAITS, ranks=(1, 2, 3),
                                 bounds=("abs", "pw_rel", "none"), crash_safe=True,
                                 hows=("", "", "collective"), clock=True, bad_puts=True)


class ConnectorDoor(ParallelHdf5Door):
    """A program with its own HDF5 1.14 (hdf5_calls.py), served by Tailrace's VOL connector."""

    PERFORMER = "hdf5-calls"
    PYTHON = sys.executable

    @staticmethod
    def hdf5():
        """The preloaded library and the connector of the build's first HDF5 that has one."""
        cache = (library("").parent / "CMakeCache.txt").read_text()
        roots = re.search(r"TAILRACE_HDF5_PROGRAMS_ROOT:\w+=(.*)", cache)
        for root in roots[1].split(";") if roots and roots[1] else ():
            for connector in library("hdf5").glob("vol-*/libtailrace_vol-1.14.so"):
                for hdf5 in pathlib.Path(root).glob("lib*/libhdf5.so"):
                    return hdf5, connector
        return None

    @classmethod
    def missing(cls):
        if not importlib.util.find_spec("mpi4py"):
            return "no MPI for Python"
        lacks = "" if cls.hdf5() else "no VOL connector for an HDF5 1.14 of a program's own"
        return Door.missing.__func__(cls) or lacks

    def preloaded(self):
        return [self.hdf5()[0]]

    def environment(self):
        return {**super().environment(), "HDF5_VOL_CONNECTOR": "tailrace",
                "HDF5_PLUGIN_PATH": str(self.hdf5()[1].parent)}


class PnetcdfDoor(ArrayRanksDoor):
    """A program on PnetCDF, with libtailrace_pnetcdf.so preloaded."""

    PERFORMER = "pnetcdf"
    LIBRARY = "libtailrace_pnetcdf.so"
    TRAITS = dataclasses.replace(
        ArrayRanksDoor.TRAITS, ranks=(1, 2, 3), records=True, groups=False,
        ops=("get", "attr", "delattr", "append", "exclusive"),
        hows=("collective", "independent", "nonblocking"), commits_early=True,
        file_options=(*ArrayRanksDoor.TRAITS.file_options, "mode=async", "mode=in_situ"))

    @classmethod
    def missing(cls):
        if not library(cls.LIBRARY).exists():
            return f"{cls.LIBRARY} is not built"
        return super().missing()

    def preloaded(self):
        return [library(self.LIBRARY)]


class StepsDoor(Door):
    """The C++ API: workload_writer.cpp, on the ranks of a communicator."""

    ON_RANKS = True
    TRAITS = Traits(
        ranks=(1, 2, 3, 4), steps=True, reads=True, bad_puts=True, growing=False,
        ops=("abort", "attr", "append"),
        attribute_types=("text", "i8", "f8", "u8"),
        exact_codecs=("none", "deflate", "deflate", "xor", "zstd", "bitshuffle"),
        file_options=("threads=1", "threads=2", "journal=on", "memory=16MiB", "align=512",
                      "buffer=64KiB", "lab.order=largest-first", "lab.order=johnson",
                      "writers=node", "for=size", "mode=async", "mode=async",
                      "mode=async,hold=promise",
                      "mode=in_situ", "mode=in_situ", "mode=in_situ,hold=promise",
                      "mode=in_situ,writers=each", "mode=async,writers=node", "fsync=on"))

    @staticmethod
    def program():
        return library("").parent / "bin" / "workload_writer"

    @classmethod
    def missing(cls):
        lacks = "" if cls.program().exists() else f"{cls.program()} is not built"
        return super().missing() or lacks

    def performer(self):
        return [str(self.program())]

    def do(self, op):
        if op["op"] == "begin" or "known" in op:
            self._dims, self._variables = {}, {}
            answer = super().do(op)
            # Fields of an earlier job, or of the file that an aborted one did not replace.
            for known in op.get("known", ()):
                self.do({**known, "earlier": True})
            return answer
        if op["op"] == "dim":
            self._dims[op["name"]] = op["size"]
            return {"ok": True}
        return super().do(op)

    def request(self, op):
        words = [self._n_requests, op["op"]]
        if op["op"] == "begin":
            words.append(op["path"])
            if op.get("fault"):
                words.append(fault_words(op["fault"]))
        elif op["op"] == "open":
            words += [op["mode"], op.get("options") or "-"]
        elif op["op"] == "var":
            words[1] = "known" if op.get("earlier") else "var"
            words += self._definition(op)
        elif op["op"] == "put":
            words += self._boxes(op)
        elif op["op"] == "badput":
            words += ["/" + op["name"], op["rank"]]
        elif op["op"] == "read":
            words += ["/" + op["name"], len(op["keys"][0])]
            for key in op["keys"]:
                words += [part[at] for at in (1, 2, 3) for part in key]
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


class FortranDoor(StepsDoor):
    """The Fortran module, with the same program."""

    TRAITS = dataclasses.replace(StepsDoor.TRAITS, ranks=(1, 2, 3), attribute_types=("i8", "f8"))

    @classmethod
    def missing(cls):
        built = (library("").parent / "tests" / "workload_fortran.mod").exists()
        return super().missing() or ("" if built else "no Fortran compiler")

    def performer(self):
        return [*super().performer(), "--fortran"]


def mpi_environment(folder):
    """Variables that let mpiexec oversubscribe cores and run as root, and that name its folder."""
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


def fault_words(fault):
    """The fault in the format of tests/campaign/recorder.c."""
    calls, action, sticky = FAULTS[fault["kind"]]
    return f"{calls}:{fault['call']}:{action}:{fault.get('rank', 0)}:{int(sticky)}"


def processes_of_session(leader):
    """The processes of a session with their states, from /proc/PID/stat."""
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            facts = pathlib.Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            if int(facts[3]) == leader:
                found[int(entry.name)] = facts[0]
    return found


def stopped_processes(leader):
    return [pid for pid, state in processes_of_session(leader).items() if state == "T"]


def with_faults(door):
    """The door with faults: one call of one rank fails, or ends or stops the rank."""
    return type(f"Faulty{door.__name__}", (door,), {
        "TRAITS": dataclasses.replace(door.TRAITS, faults=tuple(FAULTS)),
        "TIME_LIMIT_S": 30, "__doc__": door.__doc__})


_SOUND = {"array": ArrayDoor, "array-mpi": ArrayRanksDoor, "serial": SerialHdf5Door,
          "hdf5-mpi": ParallelHdf5Door, "pnetcdf": PnetcdfDoor, "steps": StepsDoor,
          "vol": ConnectorDoor, "fortran": FortranDoor}
DOORS = {**_SOUND, **{f"{name}-faults": with_faults(door) for name, door in _SOUND.items()}}
