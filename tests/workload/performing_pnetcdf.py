"""A program on the PnetCDF API, by ctypes, with libtailrace_pnetcdf.so preloaded.

Every put is ordered among all ranks: it is a collective call, or a collective call ends it ("how"
of a put).
"""

import ctypes
import os

import numpy as np

from .language import DEFAULT_FILL, attribute_value, index_of, key_shape, positions
from .performing import Door, hdf5_pieces, key_lengths, put_values, tailrace_options

_WRITE, _NOCLOBBER, _CDF5, _GLOBAL = 0x1, 0x4, 0x20, -1
_TYPES = {"i1": 1, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10,
          "u8": 11}
_WORDS = {"i1": "schar", "i2": "short", "i4": "int", "f4": "float", "f8": "double", "u1": "uchar",
          "u2": "ushort", "u4": "uint", "i8": "longlong", "u8": "ulonglong"}


def _numbers(values):
    return (ctypes.c_longlong * len(values))(*[int(value) for value in values])


class PnetcdfFile(Door):
    """One file, identified by its number."""

    def __init__(self, comm):
        from mpi4py import MPI  # noqa: PLC0415
        self.comm, self.calls, self.number = comm, ctypes.CDLL(None), None
        # A handle is a pointer or an int, depending on the MPI library.
        handle = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == 8 else ctypes.c_int
        self.handle = handle.from_address(MPI._addressof(comm))
        self.no_info = handle.from_address(MPI._addressof(MPI.INFO_NULL))

    def call(self, name, *words):
        status = getattr(self.calls, f"ncmpi_{name}")(*words)
        if status != 0:
            texts = [self.calls.ncmpi_strerror, self.calls.tailrace_pnetcdf_error]
            for text in texts:
                text.restype = ctypes.c_char_p
            raise OSError(f"ncmpi_{name}: {texts[0](status).decode()}; {texts[1]().decode()}")

    def begin(self, op):
        variables = [other for other in op["ops"] if other["op"] == "var"]
        self.path, self.options = op["path"], tailrace_options(variables)
        self.types = {known["name"]: self._type_of(known) for known in op.get("known", ())
                      if known["op"] == "var"}

    def reset(self, _):
        if self.number is not None:
            self.calls.ncmpi_abort(self.number)
        self.number = None

    def open(self, op):
        words = [op["options"].replace(",", "; ")] if op.get("options") else []
        os.environ["TAILRACE_OPTIONS"] = "; ".join([*words, *self.options])
        exists = os.path.exists(self.path)
        self.comm.Barrier()  # All ranks check before one creates the file.
        number = ctypes.c_int()
        if op["mode"] == "a" and exists:
            self.call("open", self.handle, self.path.encode(), _WRITE, self.no_info,
                      ctypes.byref(number))
        else:
            self.types = {}
            flags = _CDF5 | (_NOCLOBBER if op["mode"] == "x" else 0)
            self.call("create", self.handle, self.path.encode(), flags, self.no_info,
                      ctypes.byref(number))
        self.number, self.defining = number.value, not (op["mode"] == "a" and exists)
        self._define()
        self.call("set_fill", self.number, 0, None)

    def _define(self, on=True):
        if self.defining != on:
            self.call("redef" if on else "enddef", self.number)
        self.defining = on

    def dim(self, op):
        self._define()
        self.call("def_dim", self.number, op["name"].encode(), ctypes.c_longlong(op["size"] or 0),
                  ctypes.byref(ctypes.c_int()))

    def _number_of(self, what, name):
        found = ctypes.c_int()
        self.call(f"inq_{what}id", self.number, name.encode(), ctypes.byref(found))
        return found.value

    def var(self, op):
        self._define()
        dims = (ctypes.c_int * len(op["dims"]))(*[self._number_of("dim", name)
                                                  for name in op["dims"]])
        number = ctypes.c_int()
        self.types[op["name"]] = dtype, fill = self._type_of(op)
        self.call("def_var", self.number, op["name"].encode(), _TYPES[dtype], len(dims), dims,
                  ctypes.byref(number))
        if op.get("fill") is not None:
            self.call("def_var_fill", self.number, number.value, 0, np.array(fill).ctypes)

    @staticmethod
    def _type_of(var):
        fill = DEFAULT_FILL[var["dtype"]] if var.get("fill") is None else var["fill"]
        return var["dtype"], np.array(fill, var["dtype"])[()]

    # --- values -----------------------------------------------------------------------------------

    def prepare(self, op):
        """Join the collective calls of a put or get that belongs to another rank."""
        if op["op"] not in ("put", "extra", "get", "badput"):
            return
        self._define(False)
        if op.get("rank", 0) == self.comm.rank:
            return
        variable = self._number_of("var", op["name"])
        if op["op"] == "badput":
            self.call("put_varn_double_all", self.number, variable, 0, None, None, None)
            return
        for _ in range(self._n_calls(op)):
            if self._how(op) == "independent":
                self.call("begin_indep_data", self.number)
                self.call("end_indep_data", self.number)
            elif self._how(op) == "nonblocking":
                self.call("wait_all", self.number, 0, None, None)
            else:
                verb = "get" if op["op"] == "get" else "put"
                self.call(f"{verb}_varn_double_all", self.number, variable, 0, None, None, None)

    def _how(self, op):
        if op["op"] == "get":
            return "collective"
        return op.get("how") or "collective"

    def _n_calls(self, op):
        if 0 in key_lengths(op["key"]):
            return 0
        if op["op"] == "get" and op.get("style") == "whole":
            return 1
        if self._how(op) == "independent" or (self._how(op) == "nonblocking"
                                              and not names_twice(op["key"])):
            return 1
        return sum(1 for _ in hdf5_pieces(op["key"]))

    def put(self, op):
        dtype, fill = self.types[op["name"]]
        lengths = key_lengths(op["key"])
        if 0 in lengths:
            return
        if op.get("style") == "wider" and op["values"]["kind"] in ("specials", "wide"):
            op = {**op, "style": ""}  # An infinity exceeds a narrower type's range.
        values = np.asarray(put_values(op, dtype, fill))
        if values.shape != lengths:  # The key has an index.
            values = values.reshape(lengths)
        variable, how, requests = self._number_of("var", op["name"]), self._how(op), []
        if how == "independent":
            self.call("begin_indep_data", self.number)
        for words, part in hdf5_pieces(op["key"]):
            piece = values[part] if part else values
            name, where, last = self._access("put", words, piece, how)
            request = ctypes.c_int()
            self.call(name, self.number, variable, *where, *last,
                      *([ctypes.byref(request)] if how == "nonblocking" else []))
            if how == "nonblocking":
                requests.append((request.value, values))
                if names_twice(op["key"]):
                    self._wait(requests)
        if how == "independent":
            self.call("end_indep_data", self.number)
        elif requests:
            self._wait(requests)

    def badput(self, op):
        variable = self._number_of("var", op["name"])
        shape = self._shape(variable)
        start = [0] * (len(shape) - 1) + [shape[-1] + 5]
        value = np.zeros(1)
        self.call("put_vara_double_all", self.number, variable, _numbers(start),
                  _numbers([1] * len(shape)), value.ctypes)

    def _wait(self, requests):
        numbers = (ctypes.c_int * len(requests))(*[number for number, _ in requests])
        statuses = (ctypes.c_int * len(requests))()
        requests.clear()
        self.call("wait_all", self.number, len(numbers), numbers, statuses)
        if any(statuses):
            raise OSError(f"ncmpi_wait_all: statuses {list(statuses)}")

    @staticmethod
    def _access(verb, words, values, how):
        """The function's name, the position in the variable, and the position in memory."""
        start, count = [w.start for w in words], list(values.shape)
        step = [w.step or 1 for w in words]
        end = {"collective": "_all", "independent": "", "nonblocking": ""}[how]
        verb = f"i{verb}" if how == "nonblocking" else verb
        word = _WORDS[values.dtype.str[1:]]
        where = [_numbers(start), _numbers(count)]
        if not values.flags.c_contiguous:
            imap = [stride // values.itemsize for stride in values.strides]
            where += [_numbers(step), _numbers(imap)]
            return f"{verb}_varm_{word}{end}", where, [ctypes.c_void_p(values.ctypes.data)]
        if any(s != 1 for s in step):
            where.append(_numbers(step))
            return f"{verb}_vars_{word}{end}", where, [ctypes.c_void_p(values.ctypes.data)]
        return f"{verb}_vara_{word}{end}", where, [ctypes.c_void_p(values.ctypes.data)]

    def get(self, op):
        dtype, _ = self.types[op["name"]]
        lengths = key_lengths(op["key"])
        variable = self._number_of("var", op["name"])
        if 0 in lengths:
            return np.empty(key_shape(op["key"]), dtype)
        if op.get("style") == "whole":
            whole = np.empty(self._shape(variable), dtype)
            words = tuple(slice(0, n) for n in whole.shape)
            name, where, last = self._access("get", words, whole, "collective")
            self.call(name, self.number, variable, *where, *last)
            return whole[index_of(op["key"]) if op["key"] else ()].reshape(key_shape(op["key"]))
        values = np.empty(lengths, dtype)
        for words, part in hdf5_pieces(op["key"]):
            piece = np.empty(values[part].shape, dtype)
            name, where, last = self._access("get", words, piece, "collective")
            self.call(name, self.number, variable, *where, *last)
            values[part] = piece
        return values.reshape(key_shape(op["key"]))

    def _shape(self, variable):
        n, length = ctypes.c_int(), ctypes.c_longlong()
        self.call("inq_varndims", self.number, variable, ctypes.byref(n))
        dims, shape = (ctypes.c_int * n.value)(), []
        self.call("inq_vardimid", self.number, variable, dims)
        for dim in dims:
            self.call("inq_dimlen", self.number, dim, ctypes.byref(length))
            shape.append(length.value)
        return tuple(shape)

    # --- attributes and commits -------------------------------------------------------------------

    def attr(self, op):
        self._define()
        value, name = attribute_value(op["value"]), op["name"].encode()
        owner = self._number_of("var", op["of"]) if op["of"] else _GLOBAL
        if isinstance(value, str):
            text = value.encode()
            self.call("put_att_text", self.number, owner, name, ctypes.c_longlong(len(text)), text)
            return
        kind = value.dtype.str[1:]
        self.call(f"put_att_{_WORDS[kind]}", self.number, owner, name, _TYPES[kind],
                  ctypes.c_longlong(value.size), value.ctypes)

    def delattr(self, op):
        self._define()
        owner = self._number_of("var", op["of"]) if op["of"] else _GLOBAL
        self.call("del_att", self.number, owner, op["name"].encode())

    def flush(self, _):
        self._define(False)
        self.call("sync", self.number)
        self.call("sync", self.number)  # Completes a flush in flight (mode=async, in_situ).

    def close(self, _):
        number, self.number = self.number, None
        self.call("close", number)


def names_twice(key):
    """True if the key names a position of a dimension twice."""
    return any(len(set(positions(part).tolist())) < len(positions(part)) for part in key)
