"""The process that performs a program's operations, by one door's library.

    python -m workload.performer DOOR      TAILRACE_WORKLOAD_SOCKET names the judge's socket

Requests and answers are lines of JSON. A program begins with {"op": "begin", "path": ..., "ops":
[...]}, which also shows what is to come, and ends with {"op": "reset"}; its operations, as in
language.py, come one by one between these. An answer is {"ok": true}, with "array" for `get`, or
{"error": TYPE, "text": ...}, and the request's "id". Rank 0 talks to the judge and broadcasts
requests to the other ranks. A performer in any language can take this one's place.
"""

import base64
import itertools
import json
import os
import signal
import socket
import sys
import time
import traceback

import numpy as np

from .language import (DEFAULT_FILL, OWN, as_slices, attribute_value, index_of, key_shape,
                       positions, values_of)


def encoded(array):
    array = np.asarray(array)
    return {"dtype": array.dtype.str, "shape": list(array.shape),
            "data": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def put_values(op, dtype, fill):
    """The values of a put, in the memory layout that its style asks for."""
    values = values_of(op["values"], dtype, key_shape(op["key"]), fill)
    style = op.get("style")
    if style == "wider" and values.dtype == np.dtype("f4"):
        return values.astype("f8")
    if style == "strided" and values.ndim:
        loose = np.zeros((*values.shape, 2), values.dtype)
        loose[..., 0] = values
        return loose[..., 0]
    return np.asfortranarray(values) if style == "fortran" and values.ndim else values


class Door:
    """What the classes below share."""

    def prepare(self, op):
        """What all ranks do before one rank's own operation."""

    def forgotten(self, _):
        """See language.CRIMES."""

    def extra(self, op):
        self.put(op)

    def crash(self, _):
        os.kill(os.getpid(), signal.SIGSEGV)


class ArrayFile(Door):
    """tailrace.open, by one process or by all ranks of a communicator."""

    def __init__(self, comm=None):
        import tailrace  # noqa: PLC0415 - each door loads its own library alone.
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
        if op.get("chunks"):
            words["chunks"] = tuple(op["chunks"])
        self.file.create_variable(op["name"], op["dims"], op["dtype"], fill_value=op.get("fill"),
                                  codec=op.get("codec"), options=op.get("options") or "", **words)

    def put(self, op):
        variable = self.file[op["name"]]
        variable[as_slices(op["key"])] = put_values(op, variable.dtype,
                                                    variable.attrs.get("_FillValue"))

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

    Codecs and bounds come by TAILRACE_OPTIONS, other settings by h5py. A dimension is a length that
    variables share: HDF5 knows none, so this class resizes all of a dimension's datasets.
    """

    def __init__(self, comm=None):
        import h5py  # noqa: PLC0415
        self.h5py, self.comm, self.file = h5py, comm, None

    def begin(self, op):
        self.path, self.dims, self.defined, self.kept = op["path"], {}, {}, None
        words = []
        for var in op["ops"]:
            if var["op"] == "var" and (var.get("codec") or var.get("bound")):
                if var.get("codec") in (None, "gzip", "none") and not var.get("bound"):
                    continue
                text = [f"codec={var['codec']}"] if var.get("codec") else []
                text += [f"bound={var['bound'][0]}={var['bound'][1]}"] if var.get("bound") else []
                for key, value in (var.get("settings") or {}).items():
                    word = ("off", "on")[value] if isinstance(value, bool) else value
                    text.append(f"{key}={word}")
                words.append(f"/{var['name']}: {','.join(text)}")
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
        fill = op.get("fill")
        words = {"fillvalue": DEFAULT_FILL[op["dtype"]] if fill is None else fill}
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

    def prepare(self, op):
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

    def put(self, op):
        _, dtype, fill = self.defined[op["name"]]
        dataset = self.file[op["name"]]
        values = put_values(op, dtype, fill)
        if 0 in key_lengths(op["key"]):
            return
        values = np.asarray(values).reshape(key_lengths(op["key"]))
        for words, part in hdf5_pieces(op["key"]):
            dataset[words] = values[part]

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
        self.file.close()


def key_lengths(key):
    return tuple(len(positions(part)) for part in key)


def hdf5_pieces(key):
    """The key in selections that HDF5 knows, boxes with steps, each with its part of the values."""
    choices = []
    for part in key:
        at = positions(part)
        if part[0] == "s" and part[3] > 0:
            choices.append([(slice(part[1], part[1] + (part[2] - 1) * part[3] + 1, part[3]),
                             slice(0, len(at)))])
        else:  # One by one, in order: of a position that is named twice the last one counts.
            choices.append([(slice(int(i), int(i) + 1), slice(n, n + 1))
                            for n, i in enumerate(at)])
    for chosen in itertools.product(*choices):
        yield tuple(words for words, _ in chosen), tuple(part for _, part in chosen)


DOORS = {"array": ArrayFile, "hdf5": Hdf5File}


class Channel:
    """Lines of JSON with the judge, at rank 0."""

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
        door.prepare(op)
        if op["op"] in OWN and op.get("rank", 0) != rank:
            return {"ok": True}
        result = getattr(door, op["op"])(op)
    except Exception as error:  # noqa: BLE001 - whatever it is, the judge decides.
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
            arm(op["fault"])
        channel.send(perform(door, op, 0))
        if op["op"] == "reset" and of_one_program:
            os._exit(0)


def arm(fault):
    """Let libcampaign_recorder.so, which is preloaded, cause a fault from here on."""
    import ctypes  # noqa: PLC0415
    recorder = ctypes.CDLL(os.environ["LD_PRELOAD"])
    recorder.campaign_set_fault(f"io:{fault['call']}:{fault['kind']}:-1:0".encode())


def share(comm, channel):
    """The next request, from rank 0. The other ranks sleep until it comes: MPI would poll."""
    if channel is None:
        while not comm.iprobe(0):
            time.sleep(0.001)
        return comm.recv(source=0)
    op = channel.receive()
    for rank in range(1, comm.size):
        comm.send(op, rank)
    return op


def serve_ranks(name):
    from mpi4py import MPI  # noqa: PLC0415
    comm = MPI.COMM_WORLD
    door, ours = DOORS[name](comm), comm.Dup()
    channel = Channel(os.environ["TAILRACE_WORKLOAD_SOCKET"]) if comm.rank == 0 else None
    while (op := share(ours, channel)) is not None:
        answers = ours.gather(perform(door, op, comm.rank))
        if channel is None:
            continue
        errors = [answer.get("error") for answer in answers]
        if op["op"] not in OWN and len(set(errors)) > 1:
            channel.send({"error": "RanksDiffer", "text": f"{errors}: {answers}"[:2000]})
        else:
            channel.send(answers[op.get("rank", 0)])


def main():
    name = sys.argv[1]
    if len(sys.argv) > 2:
        serve_ranks(name)
    else:
        serve_alone(DOORS[name](), Channel(os.environ["TAILRACE_WORKLOAD_SOCKET"]))


if __name__ == "__main__":
    main()
