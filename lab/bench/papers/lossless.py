"""Compares exact coding: trz without a bound, pcodec, OpenZL, Zstandard at level 19 and xor.

    pip install pcodec==1.1.0 openzl==0.3.0
    python lab/bench/papers/lossless.py --csv lab/bench/results/lossless.csv

Fields: all fields of the real files (lab/bench/README.md), of every type. Real data have few types
other than f32, so more fields are derived from them. They are f64 as computed by a program, and
integers: packed (i16, as in netCDF), counted in steps of 2^-20 of the range (i32), or cumulative
sums (i64). Their names end in the operation.

`tailrace-lab bench codecs` measures our codecs, Zstandard and deflate. This script measures pcodec
(level 8, its default, and 12) and OpenZL (its FieldLZ graph, without training) by their Python
packages, on the same chunks. One thread, thread CPU time, medians of --repeat rounds after a
checked one. A package that is not installed is omitted, with a message.
"""

import argparse
import csv
import datetime
import importlib.metadata
import io
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np


sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "data")]
import comparison_data  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = "trz,preset=fast,trz,trz,preset=ratio,xor,zstd,level=19,deflate"
COLUMNS = ("file", "field", "dtype", "chunk_shape", "codec", "raw_bytes", "encoded_bytes",
           "encode_MB_per_s", "decode_MB_per_s")
MADE = "made.h5"


# --- data

def packed(values, fill):
    """Pack like netCDF: 16 bits over the range, the least integer for missing values."""
    kept = np.isfinite(values) & (values != fill if fill is not None else True)
    least, greatest = values[kept].min(), values[kept].max()
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.rint((values.astype("f8") - least) / (greatest - least) * 65000 - 32500)
    return np.where(kept, np.nan_to_num(steps), -32768).astype("i2")


def steps_of(values, n_bits):
    values = values.astype("f8")
    span = values.max() - values.min()
    return np.rint((values - values.min()) / span * 2.0**n_bits).astype("i8")


def made_sets():
    """Yield (name, values) of fields derived from real fields."""
    fields = {(data.file.removesuffix(".h5"), data.field.rsplit("/", 1)[-1]): data
              for data in comparison_data.real_sets() if "widened" not in data.field}
    for (file, name), data in sorted(fields.items()):
        values, fill = data.values, data.fill
        if file in ("climate", "nyx64_s140"):
            yield f"{file}/{name}-packed-i16", packed(values, fill)
        if fill is not None or not np.isfinite(values).all():
            continue
        if file in ("nyx64_s140", "nyx64_particles_s090"):
            yield f"{file}/{name}-steps-i32", steps_of(values, 20).astype("i4")
        if file in ("nyx64_s060", "lammps_lj_early"):
            yield f"{file}/{name}-sum-i64", np.cumsum(steps_of(values, 20)).reshape(values.shape)
        if file in ("nyx64_s140", "climate"):
            wide = values.astype("f8")
            span = wide.max() - wide.min()
            yield f"{file}/{name}-root-f64", np.sqrt((wide - wide.min()) / (span or 1) + 1 / 3)


def write_made(path):
    with h5py.File(path, "w") as file:
        for name, values in made_sets():
            file[name] = values


# --- codecs

class Pcodec:
    def __init__(self, level):
        import pcodec
        import pcodec.standalone
        self.codec, self.config = pcodec.standalone, pcodec.ChunkConfig(compression_level=level)
        self.name = f"pcodec-{level}"

    def takes(self, dtype):
        return dtype.itemsize > 1

    def encode(self, values):
        return self.codec.simple_compress(values, self.config)

    def decode(self, encoded, values):
        self.codec.simple_decompress_into(encoded, values)


class OpenZl:
    name = "openzl"

    def __init__(self):
        from openzl import ext
        self.ext, self.compressor = ext, ext.Compressor()
        self.compressor.select_starting_graph(ext.graphs.FieldLz()(self.compressor))

    def takes(self, dtype):
        return True

    def encode(self, values):
        context = self.ext.CCtx()
        context.ref_compressor(self.compressor)
        context.set_parameter(self.ext.CParam.FormatVersion, self.ext.MAX_FORMAT_VERSION)
        bits = values.view(f"u{values.dtype.itemsize}")
        return context.compress([self.ext.Input(self.ext.Type.Numeric, bits)])

    def decode(self, encoded, values):
        output, = self.ext.DCtx().decompress(encoded)
        values[:] = output.content.as_nparray().view(values.dtype)


def packages():
    for make in (lambda: Pcodec(8), lambda: Pcodec(12), OpenZl):
        try:
            yield make()
        except ImportError as missing:
            print(f"left out: {missing}", file=sys.stderr)


def chunks_of(values, shape):
    for start in np.ndindex(*(-(-n // step) for n, step in zip(values.shape, shape))):
        part = tuple(slice(i * step, (i + 1) * step) for i, step in zip(start, shape))
        yield np.ascontiguousarray(values[part]).reshape(-1)


def measured(codec, values, shape, repeat):
    """Encoded bytes, and seconds to encode and to decode: medians."""
    chunks = list(chunks_of(values, shape))
    spent, n_bytes = {"encode": [], "decode": []}, 0
    for turn in range(repeat + 1):
        encode_s = decode_s = n_bytes = 0
        for chunk in chunks:
            begin = time.thread_time()
            encoded = codec.encode(chunk)
            encode_s += time.thread_time() - begin
            n_bytes += len(encoded)
            decoded = np.empty_like(chunk)
            begin = time.thread_time()
            codec.decode(encoded, decoded)
            decode_s += time.thread_time() - begin
            if decoded.tobytes() != chunk.tobytes():
                raise RuntimeError(f"{codec.name} changes values")
        if turn > 0:
            spent["encode"].append(encode_s)
            spent["decode"].append(decode_s)
    return n_bytes, *(statistics.median(spent[what]) for what in ("encode", "decode"))


def rows_of_bench(program, files, repeat):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.csv"
        subprocess.run([program, "bench", "codecs", *map(str, files), "--bound", "none", "--codecs",
                        OURS, "--repeat", str(repeat), "--csv", path], check=True,
                       stdout=subprocess.DEVNULL)
        text = path.read_text().splitlines()
    head = [line for line in text if line.startswith("#")]
    rows = csv.DictReader(io.StringIO("\n".join(line for line in text if line not in head)))
    return head, list(rows)


def numbers_of(shape):
    return tuple(int(extent) for extent in shape.split("x"))


def rows_of_packages(files, fields, repeat):
    by_name = {path.name: path for path in files}
    codecs = list(packages())
    for (file, field), row in fields.items():
        with h5py.File(by_name[file]) as opened:
            values = opened[field][()]
        values = values.astype(values.dtype.newbyteorder("="))
        padded = numbers_of(row["chunk_shape"])
        n_raw = int(row["raw_bytes"])
        for codec in codecs:
            if not codec.takes(values.dtype):
                continue
            n_bytes, encode_s, decode_s = measured(codec, values, padded, repeat)
            yield {**row, "codec": codec.name, "encoded_bytes": n_bytes,
                   "encode_MB_per_s": f"{values.nbytes / encode_s / 1e6:.1f}",
                   "decode_MB_per_s": f"{values.nbytes / decode_s / 1e6:.1f}"}
            if values.nbytes != n_raw:
                raise RuntimeError(f"{file}{field}: {values.nbytes} bytes, not {n_raw}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--program", default=str(pathlib.Path(os.environ.get(
        "TAILRACE", ROOT / "build" / "bin" / "tailrace")).with_name("tailrace-lab")))
    options = parser.parse_args()
    real = sorted(comparison_data.REAL_DATA.glob("*.h5"))
    real += sorted((comparison_data.REAL_DATA / "hep").glob("*.h5"))
    if not real:
        sys.exit(f"no real data in {comparison_data.REAL_DATA}")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / MADE
        write_made(made)
        files = [*real, made]
        head, rows = rows_of_bench(options.program, files, options.repeat)
        rows = [row for row in rows if not row["refused"]]
        fields = {(row["file"], row["field"]): row for row in rows}
        rows += rows_of_packages(files, fields, options.repeat)
    versions = []
    for name in ("pcodec", "openzl"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    with open(options.csv, "w", newline="", encoding="utf-8") as out:
        out.write(f"# lab/bench/papers/lossless.py, {datetime.date.today()}, load {load:.1f} to "
                  f"{os.getloadavg()[0]:.1f}; {', '.join(versions)}, Python "
                  f"{platform.python_version()}\n")
        out.writelines(line + "\n" for line in head)
        writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
