"""trz and xor as codecs of zarr's format 3, found by their names once Tailrace is installed.

They encode a chunk to bytes, so they are an array's `serializer`; a chunk has the format of the
HDF5 filter. BytesTrz and BytesXor do the same after zarr's codec "bytes", for VirtualiZarr. (zarr's
registry does not contain the names "tailrace.trz", "numcodecs.trz", ...)

    zarr.create_array(store, data=u, chunks=(64, 64), serializer=tailrace.zarr.Trz(abs=1e-3),
                      compressors=None)
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, BytesBytesCodec

from ._chunk_codecs import trz_decode, trz_encode, words_of, xor_decode, xor_encode, xor_words
from ._keywords import TRZ, given, with_hints

__all__ = ["BytesTrz", "BytesXor", "Trz", "Xor"]

_TRZ_TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def _configuration(data: Any, name: str) -> dict[str, Any]:
    if data.get("name") != name:
        raise ValueError(f"the codec is {data.get('name')!r}, not {name!r}")
    return dict(data.get("configuration") or {})


def _native_of(chunk_spec: Any) -> np.dtype[Any]:
    """Return the type of the values in this machine's byte order, which the bytes have."""
    dtype: np.dtype[Any] = chunk_spec.dtype.to_native_dtype()
    return dtype.newbyteorder("=")


def _dense(chunk_array: Any, chunk_spec: Any) -> Any:
    return np.ascontiguousarray(chunk_array.as_numpy_array(), _native_of(chunk_spec))


def _buffers(chunk_spec: Any, values: Any) -> Any:
    """Return a chunk's values, in the type that the array was created with."""
    values = values.astype(chunk_spec.dtype.to_native_dtype(), copy=False)
    return chunk_spec.prototype.nd_buffer.from_numpy_array(values.reshape(chunk_spec.shape))


@dataclass(frozen=True)
class Trz(ArrayBytesCodec):
    """The error-bounded codec trz. Arguments: one of abs, pw_rel (rel and psnr with data=, the
    complete array; none: exact) with the settings of tailrace.Trz, or cd_values, the client data of
    an HDF5 dataset.

    fill: kept exactly; default: the array's fill value, unless that is 0.
    """

    is_fixed_size = False
    cd_values: tuple[int, ...]
    fill: Optional[float]

    @with_hints
    def __init__(
        self, cd_values: Optional[Sequence[int]] = None, fill: Optional[float] = None, *,
        abs: Optional[float] = None, rel: Optional[float] = None, pw_rel: Optional[float] = None,
        psnr: Optional[float] = None, data: Any = None, book: Optional[bytes] = None,
        preset: Optional[str] = None, predictor: Optional[str] = None,
        dimension: Optional[int] = None, spline: Optional[str] = None,
        last_axis: Union[int, str, None] = None, lossless: Optional[bool] = None,
        coarse: Optional[int] = None, refine: Optional[int] = None,
    ) -> None:
        words = words_of(cd_values, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, data=data,
                         book=book, **given(locals(), TRZ))
        object.__setattr__(self, "cd_values", words)
        object.__setattr__(self, "fill", None if fill is None else float(fill))

    @classmethod
    def from_dict(cls, data: Any) -> Trz:
        return cls(**_configuration(data, "tailrace.trz"))

    def to_dict(self) -> Any:
        configuration: dict[str, Any] = {"cd_values": list(self.cd_values)}
        if self.fill is not None:
            configuration["fill"] = self.fill
        return {"name": "tailrace.trz", "configuration": configuration}

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        found = dtype.to_native_dtype()
        if found.kind not in "fiu" or found.str[1:] not in _TRZ_TYPES:
            raise TypeError(f"trz supports {', '.join(_TRZ_TYPES)}, not {found}")

    def _fill_of(self, chunk_spec: Any) -> Optional[float]:
        if self.fill is not None or _native_of(chunk_spec).kind != "f":
            return self.fill
        fill = float(chunk_spec.fill_value) if chunk_spec.fill_value is not None else 0.0
        return fill if fill != 0 and math.isfinite(fill) else None

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        encoded = await asyncio.to_thread(trz_encode, _dense(chunk_data, chunk_spec),
                                          self.cd_values, self._fill_of(chunk_spec))
        return chunk_spec.prototype.buffer.from_bytes(encoded)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        values = await asyncio.to_thread(trz_decode, chunk_data.as_numpy_array(), self.cd_values)
        wanted = _native_of(chunk_spec)
        if values.dtype != wanted or values.size != math.prod(chunk_spec.shape):
            raise ValueError(f"trz: the chunk holds {values.size} values of {values.dtype}, not "
                             f"{math.prod(chunk_spec.shape)} of {wanted}")
        return _buffers(chunk_spec, values)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the encoded size of a trz chunk depends on its values")


@dataclass(frozen=True)
class Xor(ArrayBytesCodec):
    """The lossless codec xor. dimension: xor with the neighbours along the 1, 2 or 3 fastest axes;
    None (default): chosen for each chunk. cd_values: the client data of an HDF5 dataset."""

    is_fixed_size = False
    cd_values: tuple[int, ...]

    def __init__(self, cd_values: Optional[Sequence[int]] = None,
                 dimension: Optional[int] = None) -> None:
        object.__setattr__(self, "cd_values", xor_words(cd_values, dimension))

    @classmethod
    def from_dict(cls, data: Any) -> Xor:
        return cls(**_configuration(data, "tailrace.xor"))

    def to_dict(self) -> Any:
        return {"name": "tailrace.xor", "configuration": {"cd_values": list(self.cd_values)}}

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        if dtype.to_native_dtype().hasobject:
            raise TypeError(f"xor supports elements of fixed size, not {dtype.to_native_dtype()}")

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        encoded = await asyncio.to_thread(xor_encode, _dense(chunk_data, chunk_spec),
                                          self.cd_values)
        return chunk_spec.prototype.buffer.from_bytes(encoded)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        wanted = _native_of(chunk_spec)
        n_bytes = math.prod(chunk_spec.shape) * wanted.itemsize
        values = await asyncio.to_thread(xor_decode, chunk_data.as_numpy_array(), n_bytes)
        return _buffers(chunk_spec, values.view(wanted))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the encoded size of a xor chunk depends on its values")


# --- from bytes to bytes --------------------------------------------------------------------------


def _as_values(data: Any, chunk_spec: Any) -> Any:
    """View bytes as the values of the chunk."""
    return data.as_numpy_array().view(_native_of(chunk_spec)).reshape(chunk_spec.shape)


@dataclass(frozen=True)
class BytesTrz(BytesBytesCodec):
    """Codec trz after the codec "bytes", with the client data of an HDF5 dataset."""

    is_fixed_size = False
    cd_values: tuple[int, ...]
    fill: Optional[float]

    def __init__(self, cd_values: Sequence[int] = (), fill: Optional[float] = None) -> None:
        object.__setattr__(self, "cd_values", words_of(cd_values))
        object.__setattr__(self, "fill", None if fill is None else float(fill))

    @classmethod
    def from_dict(cls, data: Any) -> BytesTrz:
        return cls(**_configuration(data, "numcodecs.trz"))

    def to_dict(self) -> Any:
        configuration: dict[str, Any] = {"cd_values": list(self.cd_values)}
        if self.fill is not None:
            configuration["fill"] = self.fill
        return {"name": "numcodecs.trz", "configuration": configuration}

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        values = _as_values(chunk_data, chunk_spec)
        return chunk_spec.prototype.buffer.from_bytes(
            await asyncio.to_thread(trz_encode, values, self.cd_values, self.fill))

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        values = await asyncio.to_thread(trz_decode, chunk_data.as_numpy_array(), self.cd_values)
        return chunk_spec.prototype.buffer.from_array_like(values.view("B"))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the encoded size of a trz chunk depends on its values")


@dataclass(frozen=True)
class BytesXor(BytesBytesCodec):
    """Codec xor after the codec "bytes", with the client data of an HDF5 dataset."""

    is_fixed_size = False
    cd_values: tuple[int, ...]

    def __init__(self, cd_values: Sequence[int] = (1,)) -> None:
        object.__setattr__(self, "cd_values", xor_words(cd_values, None))

    @classmethod
    def from_dict(cls, data: Any) -> BytesXor:
        return cls(**_configuration(data, "numcodecs.xor"))

    def to_dict(self) -> Any:
        return {"name": "numcodecs.xor", "configuration": {"cd_values": list(self.cd_values)}}

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        values = _as_values(chunk_data, chunk_spec)
        return chunk_spec.prototype.buffer.from_bytes(
            await asyncio.to_thread(xor_encode, values, self.cd_values))

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        values = await asyncio.to_thread(xor_decode, chunk_data.as_numpy_array())
        return chunk_spec.prototype.buffer.from_array_like(values)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the encoded size of a xor chunk depends on its values")
