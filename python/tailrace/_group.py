"""Groups and dimensions: the netCDF-4 interface of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from ._attributes import Attributes
from ._encoding import BOUNDS, storage_keywords
from ._errors import ArgumentError, NotFoundError, TailraceError, text_of
from ._keywords import CODECS, NETCDF, VARIABLE, given, nearest, with_hints
from ._losses import losses_of, refuse
from ._model import joined, type_of
from ._printable import printable
from ._rounding import Rounding, rounding_of
from ._settings import option_text
from ._variable import Variable

if TYPE_CHECKING:
    from ._file import File


#: Pattern of the losses that a variable's options declare.
_EARLIER_LOSS = re.compile(r"(?:^|,)earlier-loss=([^,]*)")


class Dimension:
    """A dimension: a name and a length, which grows if it is unlimited."""

    def __init__(self, file: File, position: int) -> None:
        self._file = file
        self._position = position

    @property
    def name(self) -> str:
        return self._file._model().dimensions[self._position].name

    @property
    def unlimited(self) -> bool:
        return self._file._model().dimensions[self._position].unlimited

    def __len__(self) -> int:
        return self._file._model().dimensions[self._position].length

    def __repr__(self) -> str:
        grows = ", unlimited" if self.unlimited else ""
        return f"<tailrace.Dimension {printable(self.name)}: {len(self)}{grows}>"


class Group(Mapping[str, Any]):
    """A group of dimensions, variables, attributes and groups. A mapping of variables and groups by
    name or path."""

    def __init__(self, file: File, position: int) -> None:
        self._held = file
        self._position = position

    @property
    def _file(self) -> File:
        return self._held

    @property
    def path(self) -> str:
        """Absolute path: "/", "/g", "/g/h"."""
        return self._file._model().groups[self._position].path

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2] or "/"

    @property
    def parent(self) -> Group:
        return Group(self._file, self._file._model().groups[self._position].parent)

    @property
    def attrs(self) -> Attributes:
        """The group's attributes, a mapping."""
        return Attributes(self._file, False, self._position)

    @property
    def variables(self) -> dict[str, Variable]:
        """Variables of this group by name, in creation order."""
        return {variable.name: Variable(self._file, at)
                for at, variable in enumerate(self._file._model().variables)
                if variable.group == self._position}

    @property
    def groups(self) -> dict[str, Group]:
        """Groups of this group by name."""
        return {group.path.rpartition("/")[2]: Group(self._file, at)
                for at, group in enumerate(self._file._model().groups)
                if at and group.parent == self._position}

    @property
    def dimensions(self) -> dict[str, Dimension]:
        """Dimensions defined in this group by name."""
        return {dimension.name: Dimension(self._file, at)
                for at, dimension in enumerate(self._file._model().dimensions)
                if dimension.group == self._position}

    # --- looking up -------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        path = joined(self.path, text_of("the name of a variable or group", name))
        found = self._at(path)
        if found is None:
            parent, _, last = path.rpartition("/")
            group = self._at(parent or "/")
            hint = nearest(last, group) if isinstance(group, Group) else ""
            raise NotFoundError(f"{self._file.filename} has no variable or group {path}{hint}")
        return found

    def _at(self, path: str) -> Any:
        """Return the group or variable of an absolute path; None: the file has none."""
        model = self._file._model()
        group = model.group_at(path)
        if group is not None:
            return self._file if group == 0 else Group(self._file, group)
        parent, _, last = path.rpartition("/")
        group = model.group_at(parent or "/")
        at = None if group is None else model.variable_at(group, last)
        return None if at is None else Variable(self._file, at)

    def __contains__(self, name: object) -> bool:
        return self._at(joined(self.path, str(name))) is not None

    def __iter__(self) -> Iterator[str]:
        yield from self.variables
        yield from self.groups

    def __len__(self) -> int:
        return len(self.variables) + len(self.groups)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Group) and self._file is other._file
                and self._position == other._position)

    def __hash__(self) -> int:
        return hash((id(self._file), self._position))

    # --- defining ---------------------------------------------------------------------------------

    def create_group(self, name: str) -> Group:
        """Create a group, with its missing parents. Collective on a communicator."""
        path = joined(self.path, text_of("the name of a group", name))
        parent = path.rpartition("/")[0]
        if parent and self._file._model().group_at(parent) is None:
            self.create_group(parent)
        self._file._edit("add_group", path)
        return Group(self._file, len(self._file._model().groups) - 1)

    def require_group(self, name: str) -> Group:
        """Return the group; create it if it is missing. Collective on a communicator."""
        found = self.get(name)
        return found if isinstance(found, Group) else self.create_group(name)

    def create_dimension(self, name: str, size: Optional[int] = None) -> Dimension:
        """Create a dimension; size None: unlimited, initially empty. Collective on a
        communicator."""
        text_of("the name of a dimension", name)
        if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__")):
            raise TypeError(f"dimension {name!r}: size is {size!r}, must be a whole number or None")
        if size is not None and size < 0:
            raise ArgumentError(f"dimension {name!r}: size is {size}, must be >= 0")
        self._file._edit("add_dimension", self._position, name, int(size or 0), size is None)
        return Dimension(self._file, len(self._file._model().dimensions) - 1)

    @with_hints
    def create_variable(
        self, name: str, dims: Union[str, Sequence[str]] = (), dtype: Any = None, *,
        codec: Optional[str] = None, bound: Optional[str] = None, abs: Optional[float] = None,
        rel: Optional[float] = None, pw_rel: Optional[float] = None, psnr: Optional[float] = None,
        chunks: Union[str, Sequence[int], None] = None, fill_value: Any = None, data: Any = None,
        attrs: Optional[Mapping[str, Any]] = None, options: str = "", again: bool = False,
        preset: Optional[str] = None,
        predictor: Optional[str] = None, dimension: Optional[int] = None,
        spline: Optional[str] = None, last_axis: Union[int, str, None] = None,
        lossless: Optional[bool] = None, coarse: Optional[int] = None,
        refine: Optional[int] = None, book: Optional[str] = None, level: Optional[int] = None,
        shuffle: Optional[bool] = None, engine: Optional[str] = None,
        checksum: Optional[bool] = None, rate: Optional[float] = None,
        precision: Optional[int] = None, reversible: Optional[bool] = None,
        block: Optional[int] = None, inner: Optional[str] = None, swap: Optional[bool] = None,
        missing: Optional[str] = None, cd: Optional[str] = None,
        guard: Optional[str] = None, earlier_loss: Optional[str] = None,
        layout: Optional[str] = None, verify: Union[bool, str, None] = None,
        allow_wide_bound: Optional[bool] = None, holes: Optional[bool] = None,
        roles: Optional[bool] = None,
        chunksizes: Optional[Sequence[int]] = None, zlib: Optional[bool] = None,
        complevel: Optional[int] = None, compression: Union[str, int, None] = None,
        compression_opts: Any = None, fletcher32: Optional[bool] = None,
        contiguous: Optional[bool] = None, endian: Optional[str] = None,
        least_significant_digit: Optional[int] = None,
        significant_digits: Optional[int] = None, quantize_mode: Optional[str] = None,
        szip: Optional[bool] = None, szip_coding: Optional[str] = None,
        szip_pixels_per_block: Optional[int] = None, zstd: Optional[bool] = None,
        bzip2: Optional[bool] = None, blosc: Union[bool, str, None] = None,
        blosc_shuffle: Optional[int] = None,
    ) -> Variable:
        """Create a variable. Collective on a communicator.

        dims: names of dimensions of this group or its parents; missing ones are created with the
        lengths of `data`. dtype: NumPy's, or str; default: that of `data`.
        codec: "trz", "deflate", "zstd", ... with its settings as keywords (level=5). Default: the
        file's codec, which is lossless deflate, or chosen automatically if a bound is given.
        One bound: abs= in the unit of the values, rel= of their range, pw_rel= of each value, psnr=
        in dB, or bound="abs=1e-3". Default: exact. chunks: a shape, or an approximate size
        ("1MiB").
        Settings of codecs (docs/codecs.md): preset, ..., cd. Options of a variable
        (docs/options.md): guard, earlier_loss, layout, verify, allow_wide_bound, holes, roles.
        Default: those of the file. Keywords of netCDF4 and h5py: chunksizes, ..., blosc_shuffle.
        significant_digits=, with quantize_mode= "BitGroom" (default), "GranularBitRound", or
        "BitRound" (then a number of bits), rounds values as in the netCDF-C library.
        data: values to write immediately (staged until flush() or close()). options:
        "key=value,..." of the engine (docs/python.md). again: allow a bound for `data` that is
        already lossy, from a variable of a lossy file; the sum of the bounds is recorded. Default:
        ArgumentError.
        """
        requested = given(locals(), ("codec", "bound", *BOUNDS, "chunks"), CODECS, VARIABLE,
                          NETCDF)
        where = f"variable {text_of('the name of a variable', name)!r}"
        if "/" in name.strip("/"):
            path = joined(self.path, name)
            parent, _, last = path.rpartition("/")
            return self._file.require_group(parent or "/").create_variable(
                last, dims, dtype, fill_value=fill_value, data=data, attrs=attrs, options=options,
                again=again, **requested)
        if data is not None and not hasattr(data, "shape"):
            data = np.asarray(data)
        if dtype is None and data is None:
            raise ArgumentError(f"{where}: give dtype or data")
        try:
            type_name = type_of(data.dtype if dtype is None else dtype)
        except TailraceError as failure:
            raise type(failure)(f"{where}: {failure}") from None
        except TypeError:
            raise TypeError(f"{where}: dtype is {dtype!r}, which is not a type of NumPy") from None
        names = (dims,) if isinstance(dims, str) else _texts(f"{where}: dims", dims)
        if data is not None and len(data.shape) != len(names):
            raise ArgumentError(f"{where}: {len(names)} dimensions, but the data have "
                                f"shape {tuple(data.shape)}")
        rounding = rounding_of(where, requested, data.dtype if dtype is None else dtype)
        text = self._option_text(where, names, data, requested, options)
        fill = _fill_bytes(where, fill_value, type_name)
        if attrs is not None and not isinstance(attrs, Mapping):
            raise TypeError(f"{where}: attrs are {attrs!r:.60}, must be a mapping")
        positions = [self._dimension_for(name, dim, at, data)
                     for at, dim in enumerate(names)]
        definition = (self._position, name.strip("/"), type_name, positions, fill)
        # Check first: a refused variable stays undefined, and its name can be tried again.
        lossy = self._file._engine_file.try_variable(*definition, text)
        text, losses, rounding = _with_losses(where, text, data, lossy, again, rounding)
        self._file._edit("add_variable", *definition)
        variable = Variable(self._file, len(self._file._model().variables) - 1)
        if text:
            self._file._engine_file.set_variable_options(variable._position, text)
        if losses:
            self._file._losses[variable._position] = losses
        if attrs:
            variable.attrs.update(attrs)
        if rounding is not None:
            self._file._roundings[variable._position] = rounding
            variable.attrs.update([rounding.attribute])
        elif self._file._mode == "a":
            self._file._roundings[variable._position] = None
        if data is not None:
            variable.write(data)
        return variable

    def _option_text(self, where: str, names: Sequence[str], data: Any,
                     requested: Mapping[str, Any], options: str) -> str:
        """Return the checked request for a new variable, in the engine's option syntax."""
        model = self._file._model()
        found = [model.dimension_at(self._position, name) for name in names]
        known = [None if at is None else model.dimensions[at] for at in found]
        shape = data.shape if data is not None else None
        if shape is None and None not in known:
            shape = [dimension.length for dimension in known if dimension is not None]
        storage = storage_keywords(
            where, requested, shape, [dimension is not None and dimension.unlimited
                                      for dimension in known])
        for key in ("significant_digits", "quantize_mode"):
            storage.pop(key, None)
        own = {key: storage.pop(key, None)
               for key in ("codec", "bound", "abs", "rel", "pw_rel", "psnr", "chunks")}
        text = option_text(where, options=text_of(f"{where}: options", options), settings=storage,
                           **own)
        bounds = (own[key] for key in ("bound", "abs", "rel", "pw_rel", "psnr"))
        if (own["codec"] not in (None, "none", "deflate", "portable") or options
                or any(bound not in (None, "none") for bound in bounds)):
            self._file._may_need_filters = True
        try:
            if text:
                self._file._check_options(text)
        except TailraceError as failure:
            raise type(failure)(f"{where}: {failure}") from None
        return text

    def _dimension_for(self, variable: str, name: str, at: int, data: Any) -> int:
        model = self._file._model()
        found = model.dimension_at(self._position, name)
        if found is None:
            if data is None:
                raise NotFoundError(f"variable {variable!r}: dimension {name!r} does not exist; "
                                    "create it with create_dimension()")
            return self.create_dimension(name, int(data.shape[at]))._position
        dimension = model.dimensions[found]
        if data is not None and not dimension.unlimited and dimension.length != data.shape[at]:
            raise ArgumentError(f"variable {variable!r}: dimension {name!r} has length "
                                f"{dimension.length}, the data have {data.shape[at]}")
        return found

    # --- for people -------------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        dimensions = ", ".join(
            f"{name}: {len(dimension)}{' (unlimited)' if dimension.unlimited else ''}"
            for name, dimension in self.dimensions.items())
        if dimensions:
            yield f"dimensions: {printable(dimensions)}"
        for variable in self.variables.values():
            yield repr(variable)[len("<tailrace.Variable "):-1]
        for group in self.groups.values():
            yield f"group {printable(group.path)}: {len(group.variables)} variables"
        for name, value in self.attrs.items():
            yield printable(f"{name} = {str(value):.80}")

    def __repr__(self) -> str:
        if not self._file.is_open:
            return f"<tailrace.{type(self).__name__} of {printable(self._file.filename)}, closed>"
        lines = "\n".join(f"  {line}" for line in self._lines())
        place = printable(f"{self.path} of {self._file.filename}")
        title = f"<tailrace.{type(self).__name__} {place}>"
        return f"{title}\n{lines}" if lines else title

    def _repr_html_(self) -> str:
        from ._html import group_html
        return group_html(self)


def _with_losses(where: str, options: str, data: Any, lossy: bool, again: bool,
                 rounding: Optional[Rounding]) -> tuple[str, str, Optional[Rounding]]:
    """Return the options of a variable, which declare the losses of `data` and of rounding; these
    losses; and the rounding, which knows the earlier ones."""
    declared = _EARLIER_LOSS.search(options)
    losses = declared.group(1) if declared else losses_of(data)
    losses = "" if losses == "none" else losses
    if losses and not declared and (lossy or rounding is not None) and not again:
        raise refuse(where, losses, "give again=True, which records the sum of the bounds")
    if rounding is not None:
        rounding = replace(rounding, earlier=losses)
        losses = rounding.losses
        options = _EARLIER_LOSS.sub("", options).strip(",")
    elif declared or not losses:
        return options, losses, None
    return f"{options}{',' if options else ''}earlier-loss={losses}", losses, rounding


def _texts(where: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, Iterable):
        raise TypeError(f"{where} are {names!r}, must be names")
    return tuple(text_of(where, name) for name in names)


def _fill_bytes(where: str, fill_value: Any, type_name: str) -> Optional[bytes]:
    """Return the bytes of the fill value in the file's type."""
    if fill_value is None:
        return None
    if type_name == "text":
        return str(fill_value).encode()
    try:
        given = np.asarray(fill_value)
        with np.errstate(all="ignore"):
            fill = given.astype("S1" if type_name == "char" else type_name)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: fill_value is {fill_value!r}, must be a number") from None
    if fill.size != 1 or (fill.dtype.kind in "iu" and fill != given):
        raise ArgumentError(f"{where}: fill_value is {fill_value!r}, which does not fit "
                            f"{fill.dtype}")
    return bytes(fill.tobytes())
