"""Compares trz with the smallest of other codecs, field by field, in size only (any load will do).

    pip install numpy h5py hdf5plugin pysz==1.1.0 pcodec==1.1.0 && ninja -C build h5trz
    python lab/bench/papers/ratio_peers.py --csv lab/bench/results/ratio_peers.csv

Peers: SZ3 of the wheel pysz (interpolation; Lorenzo and regression), SPERR and ZFP of hdf5plugin,
and pcodec at level 12 on values rounded to steps of twice the bound. Each field is one chunk; each
bound is a share of its range.

trz receives the fill value. For the others, fill values and NaN can be replaced by the mean of the
remaining values; the mask, compressed by zstd, then counts as well. SPERR and ZFP always get the
replaced values. SZ3 and pcodec get original or replaced values, whichever give the smaller result.

A peer's result counts if no value is off by more than 1.06 bounds, because SPERR may slightly
exceed its bound; `error_over_bound` has the actual error. Each codec encodes in a separate process,
because some crash.
"""

import argparse
import csv
import io
import multiprocessing
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("TAILRACE_H5TRZ", str(ROOT / "build/lib/hdf5/plugin/libh5trz.so"))
sys.path[1:1] = [str(ROOT / "python"), str(ROOT / "lab" / "bench" / "data")]

import numpy as np  # noqa: E402

import comparison_data  # noqa: E402
from compare_sz3 import Pysz, Trz, heading_of_machine, zstd_bytes  # noqa: E402

PRESETS = ("fast", "default", "ratio", "max")
RELS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
ALLOWED = 1.06  # Allowed error of a peer's values, in bounds.
TIME_LIMIT_S = 300
COLUMNS = ("file", "field", "dtype", "shape", "rel", "codec", "raw_bytes", "encoded_bytes",
           "error_over_bound")


# --- codecs: (data, bound) -> encoded bytes, decoded values

def coded_by(make, *settings):
    """Wrap a codec of compare_sz3.py: make(data, bound, *settings)."""
    def run(data, bound):
        codec = make(data, bound, *settings)
        codec.encode()
        codec.decode()
        return codec.n_encoded, codec.decoded
    return run


def through_hdf5(options):
    def run(data, bound):
        import h5py
        import hdf5plugin

        # SPERR supports two and three dimensions; leading dimensions of other arrays are merged.
        values = data.values
        if values.ndim > 3:
            values = values.reshape(-1, *values.shape[-2:])
        image = io.BytesIO()
        with h5py.File(image, "w") as file:
            made = file.create_dataset("x", data=values, chunks=values.shape,
                                       compression=options(hdf5plugin, bound))
            file.flush()
            return made.id.get_storage_size(), made[...].reshape(data.values.shape)
    return run


def pcodec(data, bound):
    import pcodec
    import pcodec.standalone

    steps = np.rint(data.values.astype("f8") / (2 * bound))
    if not np.isfinite(steps).all() or np.abs(steps).max() >= 2**62:
        raise ValueError("no whole numbers")
    config = pcodec.ChunkConfig(compression_level=12)
    encoded = pcodec.standalone.simple_compress(steps.astype("i8").reshape(-1), config)
    return len(encoded), (steps * (2 * bound)).astype(data.values.dtype)


OURS = {f"trz-{preset}": coded_by(Trz, preset) for preset in PRESETS}
PEERS = {
    "sz3": coded_by(Pysz, 0), "sz3-lorenzo": coded_by(Pysz, 1), "pcodec": pcodec,
    "sperr": through_hdf5(lambda plugin, bound: plugin.Sperr(absolute=bound)),
    "zfp": through_hdf5(lambda plugin, bound: plugin.Zfp(accuracy=bound)),
}
WITHOUT_HOLES = ("sperr", "zfp")


# --- measuring

def filled(data):
    """The values with the mean in place of fill values and NaN, and the bytes of the compressed
    mask."""
    kept = data.kept
    values = np.where(kept, data.values, data.values[kept].mean(dtype="f8"))
    mask = comparison_data.DataSet(data.file, data.field, np.packbits(kept))
    full = comparison_data.DataSet(data.file, data.field,
                                   np.ascontiguousarray(values, data.values.dtype))
    return full, zstd_bytes(mask, level=19)


def run_apart(run, data, bound):
    """(bytes, largest error over the bound) of a codec in a separate process; None: it failed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child():
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            n_bytes, decoded = run(data, bound)
            kept = data.kept
            with np.errstate(invalid="ignore", over="ignore"):
                errors = np.abs(data.values.astype("f8") - decoded.astype("f8"))[kept]
            worst = float(errors.max() / bound)
            sender.send((n_bytes, worst if np.isfinite(worst) else np.inf))
        except Exception:  # noqa: BLE001  (any exception means that the codec has no result)
            sender.send(None)

    process = context.Process(target=child)
    process.start()
    sender.close()
    try:
        result = receiver.recv() if receiver.poll(TIME_LIMIT_S) else None
    except EOFError:
        result = None
    process.kill()
    process.join()
    return result


def measure(data, rel):
    values = data.values[data.kept]
    bound = rel * (float(values.max()) - float(values.min()))
    row = {"file": data.file, "field": data.field, "dtype": f"f{8 * data.values.itemsize}",
           "shape": "x".join(map(str, data.values.shape)), "rel": f"{rel:.0e}",
           "raw_bytes": data.values.nbytes}
    whole, mask_bytes = filled(data) if data.masked else (data, 0)
    for name, run in {**OURS, **PEERS}.items():
        forms = [] if data.masked and name in WITHOUT_HOLES else [(data, 0)]
        if data.masked and name in PEERS:
            forms.append((whole, mask_bytes))
        found = []
        for form, more_bytes in forms:
            result = run_apart(run, form, bound)
            if result is not None and (result[1] <= ALLOWED or name in OURS):
                found.append((result[0] + more_bytes, round(result[1], 6)))
        best = min(found, default=("", ""))
        yield row | {"codec": name, "encoded_bytes": best[0], "error_over_bound": best[1]}


# --- results

def pairs_of(rows):
    """{(file, field, rel): {codec: bytes}}"""
    pairs = {}
    for row in rows:
        if row["encoded_bytes"] == "":
            continue
        pair = pairs.setdefault((row["file"], row["field"], row["rel"]), {})
        pair[row["codec"]] = int(row["encoded_bytes"])
    return pairs


def least_of_peers(pair):
    return min((pair[name], name) for name in PEERS if name in pair)


def verdict(rows):
    """Lines with the number of pairs in which each preset is the smallest, or over 5 and 15 %
    larger."""
    pairs = pairs_of(rows)
    for preset in PRESETS:
        ours = f"trz-{preset}"
        excess = {key: pair[ours] / least_of_peers(pair)[0] - 1 for key, pair in pairs.items()}
        larger = {key: value for key, value in excess.items() if value > 0.05}
        yield (f"{ours}: {len(excess)} pairs, smallest in {sum(v <= 0 for v in excess.values())}, "
               f"more than 5 % larger in {len(larger)}, more than 15 % in "
               f"{sum(v > 0.15 for v in larger.values())}")
        for key, value in sorted(larger.items(), key=lambda item: -item[1]):
            yield f"    {' '.join(key)}: {100 * value:.1f} % ({least_of_peers(pairs[key])[1]})"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=pathlib.Path, help="write a row for each field, bound, codec")
    parser.add_argument("--sets", default="", help="only sets whose file or field has this in it")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    rows = []
    for data in comparison_data.real_sets():
        if "widened" in data.field or arguments.sets not in f"{data.file} {data.field}":
            continue
        for rel in RELS:
            found = list(measure(data, rel))
            rows += found
            print(data.file, data.field, f"{rel:.0e}", ", ".join(
                f"{row['codec']} {row['encoded_bytes']}" for row in found), file=sys.stderr,
                flush=True)
    if not rows:
        sys.exit(f"ratio_peers: no data set has {arguments.sets!r} in its name")
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            file.writelines(f"# {line}\n" for line in heading_of_machine("ratio_peers.py"))
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print("\n".join(verdict(rows)))


if __name__ == "__main__":
    main()
