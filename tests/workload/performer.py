"""The process that performs a program's operations with one door's library.

    python -m workload.performer DOOR      TAILRACE_WORKLOAD_SOCKET names the judge's socket

Requests and answers are lines of JSON. A program begins with {"op": "begin", "path": ..., "ops":
[...]}, which also announces its operations, and ends with {"op": "reset"}. Between these requests
its operations (language.py) arrive one by one. An answer is {"ok": true}, with "array" for `get`,
or {"error": TYPE, "text": ...}, and the request's "id". Rank 0 communicates with the judge and
broadcasts requests to the other ranks. A performer in any language can replace this one.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback

import numpy as np

from .language import (DEFAULT_FILL, OWN, as_slices, attribute_value, index_of, key_shape,
                       positions)
from .performing import (Door, encoded, hdf5_pieces, key_lengths, put_values,
                         tailrace_options)
from .performing_pnetcdf import PnetcdfFile


class ArrayFile(Door):
    """tailrace.open in one process, or on all ranks of a communicator."""

    def __init__(self, comm=None):
        import tailrace  # noqa: PLC0415 - each door loads only its own library.
        self.tailrace, self.comm = tailrace, comm
        self.path, self.file = "", None

    def begin(self, op):
        self.path = op["path"]

    def reset(self, _):
        if self.file is not None and self.file.is_open:
            self.file.abort()
        self.file = None

    def open(self, op):
        self.file = self.tailrace.open(self.path, op["mode"], comm=self.comm,
                                       options=op.get("options", ""))

    def dim(self, op):
        self.file.create_dimension(op["name"], op["size"])

    def var(self, op):
        words = dict(op.get("settings") or {})
        if op.get("bound"):
            words[op["bound"][0]] = op["bound"][1]
            if op["bound"][0] in ("rel", "psnr"):
                words["allow_wide_bound"] = True  # Random parts repeat any extreme value.
        if op.get("chunks"):
            words["chunks"] = tuple(op["chunks"])
        self.file.create_variable(op["name"], op["dims"], op["dtype"], fill_value=op.get("fill"),
                                  codec=op.get("codec"), options=op.get("options") or "", **words)

    def put(self, op):
        variable = self.file[op["name"]]
        variable[as_slices(op["key"])] = put_values(op, variable.dtype,
                                                    variable.attrs.get("_FillValue"))

    def badput(self, op):
        variable = self.file[op["name"]]
        variable[(0,) * (variable.ndim - 1) + (variable.shape[-1] + 5,)] = 0

    def get(self, op):
        variable = self.file[op["name"]]
        if op.get("style") == "whole":
            values = np.asarray(variable[...])
            return values[index_of(op["key"]) if op["key"] else ()].reshape(key_shape(op["key"]))
        return variable[as_slices(op["key"])]

    def attr(self, op):
        self._owner(op).attrs[op["name"]] = attribute_value(op["value"])

    def delattr(self, op):
        del self._owner(op).attrs[op["name"]]

    def _owner(self, op):
        return self.file[op["of"]] if op["of"] else self.file

    def flush(self, _):
        self.file.flush()

    def close(self, _):
        self.file.close()

    def abort(self, _):
        self.file.abort()


class Hdf5File(Door):
    """An h5py program with Tailrace preloaded, serial, or parallel by MPI-IO.

    TAILRACE_OPTIONS sets codecs and bounds; h5py sets everything else. A dimension is a length that
    variables share. HDF5 has no such concept, so this class resizes all datasets of a dimension.
    """

    def __init__(self, comm=None):
        import h5py  # noqa: PLC0415
        self.h5py, self.comm, self.file = h5py, comm, None

    def begin(self, op):
        self.path, self.dims, self.defined = op["path"], {}, {}
        for known in op.get("known", ()):
            if known["op"] == "dim":
                self.dims[known["name"]] = [known["length"], known["size"] is None]
            else:
                self.defined[known["name"]] = (known["dims"], known["dtype"], self.fill_of(known))
        ours = [{**var, "chunks": None, "options": None} for var in op["ops"] if var["op"] == "var"
                and (var.get("codec") not in (None, "gzip", "none") or var.get("bound"))]
        words = [*op.get("defaults", ()), *tailrace_options(ours)]
        if words:
            os.environ["TAILRACE_OPTIONS"] = "; ".join(words)
        else:
            os.environ.pop("TAILRACE_OPTIONS", None)

    def reset(self, _):
        if self.file:
            self.file.close()
        self.file = None

    def open(self, op):
        if op["mode"] == "w":
            self.dims, self.defined = {}, {}
        words = {"driver": "mpio", "comm": self.comm} if self.comm is not None else {}
        self.file = self.h5py.File(self.path, op["mode"], **words)

    def dim(self, op):
        self.dims[op["name"]] = [op["size"] or 0, op["size"] is None]

    def var(self, op):
        lengths = [self.dims[name] for name in op["dims"]]
        words = {"fillvalue": self.fill_of(op)}
        if lengths:
            words["maxshape"] = tuple(None if unlimited else n for n, unlimited in lengths)
            growing = any(unlimited for _, unlimited in lengths)
            if op.get("chunks"):
                words["chunks"] = tuple(op["chunks"])
            elif growing or op.get("codec") == "gzip":
                words["chunks"] = tuple(max(1, min(n, 4)) if unlimited else max(1, n)
                                        for n, unlimited in lengths)
            else:
                del words["maxshape"]
            if op.get("codec") == "gzip":
                words["compression"] = "gzip"
                words.update(op.get("settings") or {})
        self.file.create_dataset(op["name"], tuple(n for n, _ in lengths), op["dtype"], **words)
        self.defined[op["name"]] = (op["dims"], op["dtype"], words["fillvalue"])

    @staticmethod
    def fill_of(var):
        return DEFAULT_FILL[var["dtype"]] if var.get("fill") is None else var["fill"]

    def prepare(self, op):
        if op["op"] == "badput" and op.get("how") and op["rank"] != self.comm.rank:
            self.put_together(self.file[op["name"]], None, self.nothing(op))
        if op["op"] not in ("put", "extra"):
            return
        grown = set()
        for name, part in zip(self.defined[op["name"]][0], op["key"]):
            at = positions(part)
            if 0 not in key_lengths(op["key"]) and at.max() >= self.dims[name][0]:
                self.dims[name][0] = int(at.max()) + 1
                grown.add(name)
        for path, (dims, _, _) in self.defined.items():
            if grown & set(dims):
                self.file[path].resize(tuple(self.dims[name][0] for name in dims))
        if not op.get("how") or op.get("rank", 0) == self.comm.rank:
            return
        for _ in hdf5_pieces(op["key"]) if 0 not in key_lengths(op["key"]) else ():
            self.put_together(self.file[op["name"]], None, self.nothing(op))

    def nothing(self, op):
        return np.zeros(1, self.defined[op["name"]][1])

    def put_together(self, dataset, words, values):
        """A collective H5Dwrite; it writes nothing if `words` is None."""
        h5s, h5p, h5fd = self.h5py.h5s, self.h5py.h5p, self.h5py.h5fd
        together = h5p.create(h5p.DATASET_XFER)
        together.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE)
        there = dataset.id.get_space()
        here = h5s.create_simple(values.shape or (1,))
        if words is None:
            there.select_none()
            here.select_none()
        elif words:
            there.select_hyperslab(tuple(w.start for w in words), values.shape,
                                   tuple(w.step or 1 for w in words))
        dataset.id.write(here, there, np.ascontiguousarray(values), dxpl=together)

    def put(self, op):
        _, dtype, fill = self.defined[op["name"]]
        dataset = self.file[op["name"]]
        values = put_values(op, dtype, fill)
        if 0 in key_lengths(op["key"]):
            return
        values = np.asarray(values).reshape(key_lengths(op["key"]))
        for words, part in hdf5_pieces(op["key"]):
            if op.get("how"):
                self.put_together(dataset, words, np.asarray(values[part]))
            else:
                dataset[words] = values[part]

    def badput(self, op):
        dataset = self.file[op["name"]]
        words = [slice(0, 1)] * (len(dataset.shape) - 1)
        beyond = dataset.shape[-1] + 5
        words = (*words, slice(beyond, beyond + 1))
        values = np.zeros((1,) * len(words), dataset.dtype)
        self.put_together(dataset, words, values)

    def get(self, op):
        dataset = self.file[op["name"]]
        lengths = key_lengths(op["key"])
        if op.get("style") == "whole" or 0 in lengths:
            values = np.asarray(dataset[()])
            return values[index_of(op["key"]) if op["key"] else ()].reshape(key_shape(op["key"]))
        values = np.empty(lengths, dataset.dtype)
        for words, part in hdf5_pieces(op["key"]):
            values[part] = dataset[words]
        return values.reshape(key_shape(op["key"]))

    def attr(self, op):
        self._owner(op).attrs[op["name"]] = attribute_value(op["value"])

    def delattr(self, op):
        del self._owner(op).attrs[op["name"]]

    def _owner(self, op):
        return self.file[op["of"]] if op["of"] else self.file

    def flush(self, _):
        self.file.flush()

    def close(self, _):
        """Close the file. After a failed H5Fclose serial HDF5 crashes, also without Tailrace, when
        the identifier is released. So the program never releases it."""
        try:
            self.file.close()
        except Exception:
            if self.comm is None:
                self.unclosed, self.file = self.file, None
            raise


class Hdf5Calls(Hdf5File):
    """The operations of Hdf5Door on the process's own HDF5, which has no h5py."""

    def __init__(self, comm):
        from . import hdf5_calls  # noqa: PLC0415 - loads modules that other doors do not need.
        self.h5py, self.comm, self.file = hdf5_calls, comm, None

    def open(self, op):
        super().open(op)
        self.file.types = {name: dtype for name, (_, dtype, _) in self.defined.items()}

    def put_together(self, dataset, words, values):
        dataset.write(words, values, True)


DOORS = {"array": ArrayFile, "hdf5": Hdf5File, "hdf5-calls": Hdf5Calls,
         "pnetcdf": PnetcdfFile}


class Channel:
    """The connection to the judge, at rank 0: lines of JSON."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.request_id = 0

    def receive(self):
        line = self.lines.readline()
        request = json.loads(line) if line else None
        self.request_id = request["id"] if request else 0
        return request

    def send(self, answer):
        self.socket.sendall(json.dumps({"id": self.request_id, **answer}).encode() + b"\n")


def perform(door, op, rank):
    """One operation on this rank. @returns the answer."""
    try:
        if op["op"] == "begin":
            arm(op.get("fault_words"))
        door.prepare(op)
        if op["op"] in OWN and op.get("rank", 0) != rank:
            return {"ok": True}
        result = getattr(door, op["op"])(op)
    except Exception as error:  # noqa: BLE001 - the judge decides about any exception.
        return {"error": type(error).__name__, "text": str(error),
                "where": traceback.format_exc(limit=-2)}
    return {"ok": True} if op["op"] != "get" else {"ok": True, "array": encoded(result)}


def serve_alone(door, channel):
    of_one_program = False
    while (op := channel.receive()) is not None:
        if op["op"] == "begin" and op.get("fault"):
            child = os.fork()
            if child:
                status = os.waitpid(child, 0)[1]
                if os.WIFSIGNALED(status):
                    channel.send({"error": "Died",
                                  "text": signal.Signals(os.WTERMSIG(status)).name})
                continue
            of_one_program = True
        channel.send(perform(door, op, 0))
        if op["op"] == "reset" and of_one_program:
            os._exit(0)


def arm(fault):
    """Arm libcampaign_recorder.so, if it is preloaded, with a fault, or with none."""
    import ctypes  # noqa: PLC0415
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).campaign_set_fault(fault and fault.encode())


def share(comm, channel):
    """The next request, from rank 0. Other ranks sleep until it arrives, because MPI would poll."""
    if channel is None:
        began = time.monotonic()
        while not comm.iprobe(0):
            time.sleep(min(0.05, 0.001 + (time.monotonic() - began) / 10))
        return comm.recv(source=0)
    op = channel.receive()
    for rank in range(1, comm.size):
        comm.send(op, rank)
    return op


def joint_answer(op, answers):
    """The answer of all ranks. An operation of one rank has that rank's answer, or the error of
    another rank that takes part in it."""
    errors = [answer.get("error") for answer in answers]
    if op["op"] not in OWN and len(set(errors)) > 1:
        return {"error": "RanksDiffer", "text": f"{errors}: {answers}"[:2000]}
    mine = answers[op.get("rank", 0)]
    failed = [answer for answer in answers if "error" in answer]
    return failed[0] if failed and "error" not in mine else mine


def serve_ranks(name):
    from mpi4py import MPI  # noqa: PLC0415
    comm = MPI.COMM_WORLD
    door, ours = DOORS[name](comm), comm.Dup()
    channel = Channel(os.environ["TAILRACE_WORKLOAD_SOCKET"]) if comm.rank == 0 else None
    while (op := share(ours, channel)) is not None:
        answers = ours.gather(perform(door, op, comm.rank))
        if channel is None:
            continue
        channel.send(joint_answer(op, answers))


def main():
    name = sys.argv[1]
    if len(sys.argv) > 2:
        serve_ranks(name)
    else:
        serve_alone(DOORS[name](), Channel(os.environ["TAILRACE_WORKLOAD_SOCKET"]))


if __name__ == "__main__":
    main()
