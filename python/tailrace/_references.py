"""references: a file's chunk addresses in kerchunk's format, so that zarr reads the chunks in
place.

Each chunk has one entry: file, address, bytes. The entries are accompanied by zarr metadata of
format 2 with the codecs that undo the HDF5 filters. Some values are stored in the document itself:
those without bytes of their own in the file, and those that these codecs cannot decode (chunks
stored without filters, texts, holes).
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
from collections.abc import Iterator
from typing import Any, Optional

import numpy as np

from ._engine_loader import engine
from ._errors import UnsupportedError
from ._file import File, Storage, path_of
from ._group import Group
from ._model import netcdf_path
from ._variable import Variable

_BOOKKEEPING = ("_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict",
                "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_FillValue")


class References(dict[str, Any]):
    """Result of references(): kerchunk's document, a dictionary that prints as one line."""

    def __repr__(self) -> str:
        refs = self.get("refs", {})
        n_chunks = sum(isinstance(one, list) for one in refs.values())
        n_variables = sum(key.endswith("/.zarray") for key in refs)
        return (f"<tailrace.references: {n_variables:,} variables, {n_chunks:,} chunks in place; "
                "a dict of \"version\" and \"refs\">")


def references(path: Any, output: Any = None, *, url: Optional[str] = None) -> dict[str, Any]:
    """Make a kerchunk document (version 1) of the chunk addresses of an HDF5 or netCDF-4 file.

    zarr reads it through fsspec's "reference" file system, without copying a byte, from any storage
    that holds the file. xarray and tools that accept kerchunk documents read it, too. Needs
    numcodecs here; readers need it as well, and Tailrace for chunks of trz and xor. url: where
    readers find the file (default: its absolute path). output: also write the document there as
    JSON (default: none).
    @error UnsupportedError  compounds, data in other files, and filters other than deflate,
    shuffle, Fletcher's checksum, Zstandard, trz and xor.
    """
    try:
        import numcodecs  # noqa: F401
    except ImportError as failure:
        raise ImportError("references() needs numcodecs: pip install numcodecs") from failure
    given = path_of(path)
    target = os.path.abspath(given) if url is None else url
    found: dict[str, Any] = {}
    with File(given) as file:
        index = _index_of(given)
        for group in _groups(file):
            base = group.path.strip("/")
            prefix = f"{base}/" if base else ""
            found[f"{prefix}.zgroup"] = _json({"zarr_format": 2})
            found[f"{prefix}.zattrs"] = _json(_attributes(group))
            for variable in group.variables.values():
                field = index.get(variable._listed_path)
                for key, value in _entries(variable, field, target):
                    found[f"{prefix}{variable.name}/{key}"] = value
    _consolidate(found)
    made = References(version=1, refs=found)
    if output is not None:
        with open(path_of(output), "w", encoding="utf-8") as written:
            json.dump(made, written)
    return made


def _consolidate(found: dict[str, Any]) -> None:
    """Add to each group the metadata of all its members, so that no reader needs to list the
    members. Not every zarr store can list references."""
    objects = {key: json.loads(value) for key, value in found.items()
               if key.rpartition("/")[2] in (".zgroup", ".zarray", ".zattrs")}
    for key in [key for key in objects if key.rpartition("/")[2] == ".zgroup"]:
        prefix = key.removesuffix(".zgroup")
        inside = {name.removeprefix(prefix): value for name, value in objects.items()
                  if name.startswith(prefix)}
        found[f"{prefix}.zmetadata"] = _json({"zarr_consolidated_format": 1, "metadata": inside})


def _index_of(path: str) -> dict[str, Any]:
    """Return info() of the number variables with their chunks, by path."""
    document, _ = engine().info(path, "")
    if document["fields"]:
        document, _ = engine().info(path, "*")
    return {netcdf_path(field["path"]): field for field in document["fields"]}


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for inner in group.groups.values():
        yield from _groups(inner)


# --- metadata -------------------------------------------------------------------------------------


def _json(value: Any) -> str:
    return json.dumps(value)


def _plain(value: Any) -> Any:
    """Convert an attribute's value to a JSON type."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _attributes(owner: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in owner.attrs.items()
            if name not in _BOOKKEEPING}


def _fill_json(fill: Any) -> Any:
    if fill is None:
        return None
    value = np.asarray(fill).reshape(-1)[0]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    number = value.item()
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return number


def _filters(variable: Variable, stored: Storage) -> list[dict[str, Any]]:
    """Return numcodecs' configurations of the HDF5 filters, in the order of encoding."""
    made: list[dict[str, Any]] = []
    for (number, _, client_data), name in zip(stored.filters, variable.filters):
        item_bytes = variable.dtype.itemsize
        if number == 1:
            made.append({"id": "zlib", "level": int(client_data[0]) if client_data else 6})
        elif number == 2:
            made.append({"id": "shuffle", "elementsize": item_bytes})
        elif number == 3:
            made.append({"id": "fletcher32"})
        elif number == 32015:
            made.append({"id": "zstd", "level": int(client_data[0]) if client_data else 3})
        elif number in (481, 482):
            made.append({"id": "trz" if number == 481 else "xor", "cd_values": list(client_data)})
        else:
            raise UnsupportedError(f"{variable.path}: chunks of the filter {name} cannot be "
                                   "referenced; supported are deflate, shuffle, fletcher32, zstd, "
                                   "trz and xor")
    return made


# --- chunks ---------------------------------------------------------------------------------------


def _entries(variable: Variable, field: Optional[dict[str, Any]], url: str
             ) -> Iterator[tuple[str, Any]]:
    stored = variable._file._storage(variable._position)
    attributes = {"_ARRAY_DIMENSIONS": list(variable.dims), **_attributes(variable)}
    fill = variable.attrs.get("_FillValue")
    in_place = (field is not None and stored is not None and stored.plain_number
                and stored.kind in ("chunked", "contiguous") and variable.size > 0)
    if stored is not None and stored.elsewhere:
        raise UnsupportedError(f"{variable.path}: its data are in other files, which cannot be "
                               "referenced")
    if not in_place or stored is None or field is None:
        yield from _inside(variable, attributes, fill)
        return
    dtype = variable.dtype.newbyteorder(">" if stored.swapped else "<")
    chunks = stored.chunk_shape if stored.kind == "chunked" else variable.shape
    filters = _filters(variable, stored)
    yield ".zarray", _zarray(variable.shape, chunks, dtype, fill, filters)
    yield ".zattrs", _json(attributes)
    if stored.kind == "contiguous":
        if stored.data_address:
            key = ".".join("0" for _ in chunks) or "0"
            yield key, [url, stored.data_address, variable.nbytes]
        elif fill is None:
            yield from _filled(variable, chunks, dtype, [], [tuple(0 for _ in chunks)])
        return
    yield from _chunked(variable, field, chunks, dtype, filters, fill, url, stored.plain_edges)


def _zarray(shape: Any, chunks: Any, dtype: np.dtype[Any], fill: Any,
            filters: list[dict[str, Any]]) -> str:
    return _json({"zarr_format": 2, "shape": list(shape), "chunks": list(chunks),
                  "dtype": "|O" if dtype.hasobject else dtype.str, "fill_value": _fill_json(fill),
                  "order": "C", "filters": filters or None, "compressor": None,
                  "dimension_separator": "."})


def _chunked(variable: Variable, field: dict[str, Any], chunks: tuple[int, ...],
             dtype: np.dtype[Any], filters: list[dict[str, Any]], fill: Any, url: str,
             plain_edges: bool) -> Iterator[tuple[str, Any]]:
    shape = variable.shape
    there: set[tuple[int, ...]] = set()
    for chunk in field["chunks"]:
        start = tuple(chunk["start"])
        if any(at >= n for at, n in zip(start, shape)):
            continue  # A remainder of a dataset that was longer.
        position = tuple(at // n for at, n in zip(start, chunks))
        there.add(position)
        over = plain_edges and any(at + n > length
                                   for at, n, length in zip(start, chunks, shape))
        key = ".".join(map(str, position))
        if filters and (chunk["filter_mask"] or over):
            yield key, _inline(_encoded(_chunk_values(variable, position, chunks, dtype), filters))
        else:
            yield key, [url, chunk["address"], chunk["bytes"]]
    if fill is None:
        # zarr would leave holes undefined, and a fill value set here would read as missing.
        grid = itertools.product(*(range(-(-n // m)) for n, m in zip(shape, chunks)))
        yield from _filled(variable, chunks, dtype, filters, [at for at in grid if at not in there])


def _filled(variable: Variable, chunks: tuple[int, ...], dtype: np.dtype[Any],
            filters: list[dict[str, Any]], holes: list[tuple[int, ...]]
            ) -> Iterator[tuple[str, Any]]:
    """Return the chunks that were never written: one value everywhere."""
    text: Optional[str] = None
    for position in holes:
        if text is None:
            value = variable[tuple(at * n for at, n in zip(position, chunks))]
            text = _inline(_encoded(np.full(chunks, value, dtype), filters))
        yield ".".join(map(str, position)) or "0", text


def _chunk_values(variable: Variable, position: tuple[int, ...], chunks: tuple[int, ...],
                  dtype: np.dtype[Any]) -> Any:
    """Return a complete chunk's values; beyond the edge zeros."""
    key = tuple(slice(at * n, min((at + 1) * n, length))
                for at, n, length in zip(position, chunks, variable.shape))
    part = np.asarray(variable[key])
    values = np.zeros(chunks, dtype)
    values[tuple(slice(0, n) for n in part.shape)] = part
    return values


def _encoded(values: Any, filters: list[dict[str, Any]]) -> bytes:
    """Encode by the codecs, exactly: a bound in their client data is not applied again."""
    from numcodecs.registry import get_codec

    from ._chunk_codecs import trz_encode
    data: Any = values
    for config in filters:
        if config["id"] == "trz":
            data = trz_encode(data, (), None)
        else:
            data = get_codec(dict(config)).encode(data)
    return data.tobytes() if isinstance(data, np.ndarray) else bytes(data)


def _inline(data: bytes) -> str:
    return f"base64:{base64.b64encode(data).decode()}"


def _inside(variable: Variable, attributes: dict[str, Any], fill: Any
            ) -> Iterator[tuple[str, Any]]:
    """Put the values of texts and of small or unusual variables into the document."""
    values = np.asarray(variable[...])
    filters: list[dict[str, Any]] = []
    if values.dtype.kind in "OU":
        filters = [{"id": "vlen-utf8"}]
        values = values.astype(object)
        fill = None
    elif values.dtype.kind not in "fiubSc":
        raise UnsupportedError(f"{variable.path}: values of type {values.dtype} cannot be "
                               "referenced")
    if values.dtype.kind != "S":
        dtype = values.dtype if values.dtype.hasobject else np.dtype(values.dtype.str)
        values = values.astype(dtype)
    yield ".zarray", _zarray(values.shape, tuple(max(n, 1) for n in values.shape), values.dtype,
                             fill, filters)
    yield ".zattrs", _json(attributes)
    if values.size:
        data = _encoded(values.reshape(-1), filters) if filters else values.tobytes()
        yield ".".join("0" for _ in values.shape) or "0", _inline(data)
