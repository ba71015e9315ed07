"""Compares trz with SZ3 on the same chunks, in turn, in one process and one thread.

Two builds of SZ3 are used: the wheel of pysz (pip install pysz==1.1.0), the fastest known, and SZ3
3.3.2 compiled from source (sz3_source.py; omitted with --no-source). Each runs in its default mode
(interpolation) and with Lorenzo and regression. Zstd-3, plain and shuffled, is compared in ratio
only.

    python lab/bench/papers/compare_sz3.py --csv lab/bench/results/trz_sz3.csv

Times are thread CPU time: medians of --repeat rounds in turn, after a checked round. Needs numpy,
h5py, pysz; the codec is build/lib/hdf5/plugin/libh5trz.so (or TAILRACE_H5TRZ).
"""

import argparse
import collections
import csv
import ctypes
import datetime
import importlib.metadata
import os
import pathlib
import platform
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TAILRACE_H5TRZ", str(ROOT / "build/lib/hdf5/plugin/libh5trz.so"))
sys.path[1:1] = [str(ROOT / "python"), str(ROOT / "lab" / "bench" / "data")]

import numpy as np  # noqa: E402

import comparison_data  # noqa: E402
import sz3_source  # noqa: E402
import tailrace  # noqa: E402
from tailrace import _native  # noqa: E402

PRESETS = ("fast", "default", "ratio")
COLUMNS = ("file", "field", "dtype", "shape", "bound", "absolute_bound", "codec", "raw_bytes",
           "encoded_bytes", "ratio", "encode_MB_per_s", "encode_spread", "decode_MB_per_s",
           "decode_spread", "error_over_bound", "values_beyond_bound", "special_changed", "hard",
           "masked")


class Trz:
    """trz through its C interface, with buffers that are allocated once."""

    def __init__(self, data, bound, preset):
        values = data.values
        words = tailrace.cd_values(abs=bound, preset=preset)
        self.values, self.n_words = values, len(words)
        self.words = (ctypes.c_uint32 * len(words))(*words)
        self.extents = (ctypes.c_uint64 * values.ndim)(*values.shape)
        fill = None if data.fill is None else ctypes.pointer(ctypes.c_double(data.fill))
        self.array = _native.Array(("f4", "f8").index(values.dtype.str[1:]), values.ndim,
                                   self.extents, fill)
        self.out = np.empty(_native.library.trz_encoded_bytes_max(values.nbytes), "u1")
        self.decoded = np.empty_like(values)

    def encode(self):
        self.n_encoded = _native.call(
            "trz_encode", self.words, self.n_words, ctypes.byref(self.array),
            self.values.ctypes.data, self.values.nbytes, self.out.ctypes.data, self.out.nbytes)

    def decode(self):
        _native.call("trz_decode", self.out.ctypes.data, self.n_encoded,
                     _native.book_argument(None), self.decoded.ctypes.data,
                     self.decoded.nbytes)


class Pysz:
    """SZ3 of the pysz wheel."""

    def __init__(self, data, bound, lorenzo):
        import pysz

        self.sz, self.values = pysz.sz, data.values
        self.config = pysz.szConfig(data.values.shape)
        self.config.errorBoundMode = pysz.szErrorBoundMode.ABS
        self.config.absErrorBound = bound
        self.config.cmprAlgo = (pysz.szAlgorithm.LORENZO_REG if lorenzo
                                else pysz.szAlgorithm.INTERP_LORENZO)

    def encode(self):
        self.encoded, _ = self.sz.compress(self.values, self.config)
        self.n_encoded = self.encoded.nbytes

    def decode(self):
        self.decoded, _ = self.sz.decompress(self.encoded, self.values.dtype, self.values.shape)


class Sz3Source:
    """SZ3 3.3.2, compiled from source by sz3_source.py."""

    library = None

    def __init__(self, data, bound, lorenzo):
        self.values, self.bound, self.lorenzo = data.values, bound, lorenzo
        self.is_f64 = int(data.values.dtype == np.float64)
        self.extents = (ctypes.c_size_t * data.values.ndim)(*data.values.shape)
        self.out = np.empty(2 * data.values.nbytes + (1 << 20), "u1")
        self.decoded = np.empty_like(data.values)

    def encode(self):
        self.n_encoded = self.library.sz3_encode(
            self.is_f64, self.extents, self.values.ndim, self.bound, self.lorenzo,
            self.values.ctypes.data, self.out.ctypes.data, self.out.nbytes)
        if self.n_encoded < 0:
            raise RuntimeError("SZ3 refused")

    def decode(self):
        if self.library.sz3_decode(self.is_f64, self.out.ctypes.data, self.n_encoded,
                                   self.decoded.ctypes.data) != 0:
            raise RuntimeError("SZ3 refused its own bytes")


def make_codecs(data, bound, with_source):
    codecs = {f"trz-{preset}": Trz(data, bound, preset) for preset in PRESETS}
    codecs["pysz"] = Pysz(data, bound, lorenzo=0)
    codecs["pysz-lorenzo"] = Pysz(data, bound, lorenzo=1)
    if with_source:
        codecs["sz3-3.3.2"] = Sz3Source(data, bound, lorenzo=0)
        codecs["sz3-3.3.2-lorenzo"] = Sz3Source(data, bound, lorenzo=1)
    return codecs


def keep_heap_pages():
    """Make glibc keep freed pages, so that no codec pays for page faults."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    m_trim_threshold, m_mmap_max = -1, -4
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 1 << 30)


def check(data, codec, bound):
    """Largest error over the bound, number of values beyond it, and number of changed NaN, Inf and
    fill values. SZ3 does not know fill values: for them it promises the bound, and keeps it."""
    kept = data.kept
    decoded = codec.decoded.reshape(data.values.shape)
    with np.errstate(invalid="ignore"):
        errors = np.abs(data.values.astype("f8") - decoded.astype("f8"))[kept]
    n_bad = int(np.count_nonzero(~(errors <= bound)))
    before, after = data.values[~kept], decoded[~kept]
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    return float(errors.max() / bound), n_bad, int(np.count_nonzero(~same))


def zstd_bytes(data, level=3):
    """Encoded bytes of Zstd on the values, plain or shuffled, whichever is smaller."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    raw = data.values.reshape(-1).view("u1")
    shuffled = np.ascontiguousarray(raw.reshape(-1, data.values.itemsize).T).reshape(-1)
    out = np.empty(raw.nbytes + raw.nbytes // 128 + 1024, "u1")
    return min(library.ZSTD_compress(
        ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes),
        ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(source.nbytes), ctypes.c_int(level))
        for source in (raw, shuffled))


def measure(data, rel, n_repeats, with_source):
    """Measure every codec on one chunk. @returns a row for each."""
    values = data.values[data.kept]
    bound = rel * (float(values.max()) - float(values.min()))
    row = {"file": data.file, "field": data.field, "dtype": {4: "f32", 8: "f64"}[
        data.values.itemsize], "shape": "x".join(map(str, data.values.shape)),
        "bound": f"rel={rel:.0e}", "absolute_bound": bound, "raw_bytes": data.values.nbytes,
        "hard": int(data.hard), "masked": int(data.masked)}
    codecs = make_codecs(data, bound, with_source)
    checks = {}
    for name, codec in codecs.items():
        codec.encode()
        codec.decode()
        checks[name] = check(data, codec, bound)
    times = collections.defaultdict(list)
    master = data.values.copy()
    for _ in range(n_repeats):
        for name, codec in codecs.items():
            np.copyto(data.values, master)  # Values then come from the cache, as in a run.
            start = time.thread_time()
            codec.encode()
            middle = time.thread_time()
            codec.decode()
            times[name].append((middle - start, time.thread_time() - middle))
    megabytes = data.values.nbytes / 1e6
    for name, codec in codecs.items():
        figures = {}
        for what, seconds in zip(("encode", "decode"), zip(*times[name])):
            median = statistics.median(seconds)
            figures[f"{what}_MB_per_s"] = round(megabytes / median, 1)
            figures[f"{what}_spread"] = round((max(seconds) - min(seconds)) / median, 3)
        yield row | figures | {
            "codec": name, "encoded_bytes": codec.n_encoded,
            "ratio": round(data.values.nbytes / codec.n_encoded, 4),
            "error_over_bound": round(checks[name][0], 6), "values_beyond_bound": checks[name][1],
            "special_changed": checks[name][2]}
    n_zstd = zstd_bytes(data)
    yield row | {"codec": "zstd-3", "encoded_bytes": n_zstd,
                 "ratio": round(data.values.nbytes / n_zstd, 4)}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return platform.processor()


def heading_of_machine(program):
    return [
        f"{program}, trz {tailrace.__version__}, "
        f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        f"{processor()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}",
    ]


def heading(arguments):
    return heading_of_machine("lab/bench/papers/compare_sz3.py") + [
        f"pysz {importlib.metadata.version('pysz')}; SZ3 3.3.2 compiled with "
        f"{' '.join(sz3_source.FLAGS)}" if not arguments.no_source else
        f"pysz {importlib.metadata.version('pysz')}",
        f"one thread; MB/s: 10^6 uncompressed bytes a second of thread CPU time, medians of "
        f"{arguments.repeat} runs in turn; spread: (largest - smallest) / median",
    ]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=pathlib.Path, help="write a row for each set, bound, codec")
    parser.add_argument("--repeat", type=int, default=7, help="counted rounds (default 7)")
    parser.add_argument("--rel", default="1e-2,1e-3,1e-4,1e-5,1e-6",
                        help="bounds, shares of the range (default 1e-2,...,1e-6)")
    parser.add_argument("--sets", default="", help="only sets whose file or field has this in it")
    parser.add_argument("--no-source", action="store_true", help="leave out SZ3 3.3.2")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    keep_heap_pages()
    if not arguments.no_source:
        Sz3Source.library = sz3_source.load()
    lines = heading(arguments)
    rows = []
    for data in comparison_data.all_sets():
        if arguments.sets not in f"{data.file} {data.field}":
            continue
        for rel in map(float, arguments.rel.split(",")):
            found = list(measure(data, rel, arguments.repeat, not arguments.no_source))
            rows += found
            print(f"{data.file} {data.field} {data.values.dtype} rel={rel:.0e}:", ", ".join(
                f"{r['codec']} {r['ratio']:.2f}" + (f" ({r['encode_MB_per_s']:.0f}/"
                f"{r['decode_MB_per_s']:.0f})" if "encode_MB_per_s" in r else "") for r in found),
                file=sys.stderr, flush=True)
    if not rows:
        sys.exit(f"compare_sz3: no data set has {arguments.sets!r} in its name")
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            file.writelines(f"# {line}\n" for line in lines)
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    import comparison_verdict

    print("\n".join(lines))
    print(comparison_verdict.text(rows))


if __name__ == "__main__":
    main()
