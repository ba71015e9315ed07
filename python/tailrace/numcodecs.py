"""trz and xor as codecs of numcodecs, for zarr's format 2 and references to HDF5 files.

numcodecs finds them by the ids "trz" and "xor" once Tailrace is installed; a chunk has the format
of the HDF5 filter. Use them as `filters` or `compressor` of an array:

    zarr.create_array(store, shape=u.shape, chunks=(64, 64), dtype="f4", zarr_format=2,
                      filters=None, compressors=tailrace.numcodecs.Trz(abs=1e-3))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ensure_ndarray_like, ndarray_copy

from ._chunk_codecs import (
    fill_of,
    trz_decode,
    trz_encode,
    words_of,
    xor_decode,
    xor_encode,
    xor_words,
)
from ._keywords import TRZ, given, with_hints

__all__ = ["Trz", "Xor"]


class Trz(Codec):
    """The error-bounded codec trz.

    Arguments: one of abs, pw_rel (or rel and psnr with data=, the complete array; none: exact) with
    the settings of tailrace.Trz; or cd_values, the client data of an HDF5 dataset. fill: kept
    exactly; default: the value recorded in cd_values. Supports float32, float64 and integers in
    this machine's byte order.

    >>> import numpy as np
    >>> u = np.sin(np.linspace(0, 9, 4096)).reshape(64, 64)
    >>> codec = Trz(abs=1e-3)
    >>> bool(abs(codec.decode(codec.encode(u)).reshape(64, 64) - u).max() <= 1e-3)
    True
    """

    codec_id = "trz"

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
        self.cd_values = list(words_of(cd_values, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr,
                                       data=data, book=book, **given(locals(), TRZ)))
        self.fill = None if fill is None else float(fill)

    def encode(self, buf: Any) -> bytes:
        return trz_encode(ensure_ndarray_like(buf), tuple(self.cd_values), self.fill)

    def decode(self, buf: Any, out: Any = None) -> Any:
        values = trz_decode(ensure_contiguous_ndarray(buf), tuple(self.cd_values))
        return ndarray_copy(values, out)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"id": self.codec_id, "cd_values": self.cd_values}
        if self.fill is not None and self.fill != fill_of(self.cd_values):
            config["fill"] = self.fill
        return config

    def __repr__(self) -> str:
        return f"Trz(cd_values={self.cd_values})"


class Xor(Codec):
    """The lossless codec xor, for elements of any fixed size.

    dimension: xor with the neighbours along the 1, 2 or 3 fastest axes; None (default): chosen for
    each chunk. cd_values: the client data of an HDF5 dataset.

    >>> import numpy as np
    >>> u = np.arange(100.0)
    >>> bool((Xor().decode(Xor().encode(u)).view("f8") == u).all())
    True
    """

    codec_id = "xor"

    def __init__(self, cd_values: Optional[Sequence[int]] = None,
                 dimension: Optional[int] = None) -> None:
        self.cd_values = list(xor_words(cd_values, dimension))

    def encode(self, buf: Any) -> bytes:
        return xor_encode(ensure_ndarray_like(buf), tuple(self.cd_values))

    def decode(self, buf: Any, out: Any = None) -> Any:
        return ndarray_copy(xor_decode(ensure_contiguous_ndarray(buf)), out)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, "cd_values": self.cd_values}

    def __repr__(self) -> str:
        return f"Xor(cd_values={self.cd_values})"
