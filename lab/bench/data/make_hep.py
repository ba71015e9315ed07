#!/usr/bin/env python3
"""Makes HDF5 files like those of the NOvA experiment, to be concatenated.

    make_hep.py hep16 --files 16 --datasets 2000 --size 846MB     16 files and list.txt
    lab/bench/data/make_hep.py small --files 2000 --datasets 200 --size 200MB --images 1

The structure follows Lee et al. 2022, section 2 and table 3. A subrun is a file, a table is a
group, a column is a dataset of (rows, 1). Most datasets (84 %) have no rows, because they are used
for simulations only. A few datasets are images of (rows, width) bytes, which are most of the raw
bytes. All datasets have chunks of 128 rows and gzip 6. Each group has the columns run, subrun and
event for every row, and those of deeper levels. Events are sorted, and the file's /spill lists all
of them. Files differ in length by a factor of 3, and every eighth group is much longer than others.

Only the randomly drawn parts differ from real data, and they depend on --seed only: equal arguments
give equal contents for any number of --jobs. Needs numpy and h5py.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import time
import zlib
from typing import NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5p, h5s, h5t

from byte_sizes import bytes_of

CHUNK_ROWS = 128
LEVEL = 6
SUBRUNS_PER_RUN = 64
FIRST_RUN = 11981
#: The longest file over the shortest; the factor by which every eighth group is longer.
FILE_FACTOR, LONG_GROUP, LONG_EVERY = 3.0, 8.0, 8
SPILL = ("run", "subrun", "evt")
#: Columns that identify a row, by depth of the table: slices, their vertices, their prongs.
IDS = (("run", "subrun", "evt", "subevt"), ("run", "subrun", "evt", "subevt", "vtxid"),
       ("run", "subrun", "evt", "subevt", "vtxid", "npng"))
ID_TYPES = {"run": "u4", "subrun": "u4", "evt": "u4", "subevt": "u2", "vtxid": "u2", "npng": "u2"}
#: Element types of the columns and their shares. Most elements of integers have the same value.
TYPES, SHARES = ("f4", "f8", "u4", "u2"), (0.65, 0.1, 0.15, 0.1)
WORDS = ("calE", "meanpos.x", "meanpos.y", "meanpos.z", "dir.x", "dir.y", "dir.z", "nhit", "len",
         "time", "chi2", "prob", "dist", "start.x", "stop.x", "ncells", "pid", "overlap")
TABLES = ("trkkalman", "slc", "vtx.elastic", "cosmic", "energy", "sel.contain", "sel.cvn", "shw")


class Column(NamedTuple):
    name: str
    dtype: str
    width: int = 1  # elements per row
    ratio: float = 0  # images: raw bytes over encoded


class Group(NamedTuple):
    name: str
    columns: list
    rows: float  # rows in an average file; 0: empty in all files


# --- the schema, the same for all files

def make_columns(rng, ids, n_more):
    kinds = rng.choice(len(TYPES), n_more, p=SHARES)
    return [Column(name, ID_TYPES[name]) for name in ids] + \
        [Column(f"{WORDS[i % len(WORDS)]}{i // len(WORDS) or ''}", TYPES[kind])
         for i, kind in enumerate(kinds)]


def split(rng, total, n_parts, least):
    """Split `total` into unequal parts of at least `least`."""
    weights = rng.exponential(size=n_parts) + 0.3
    bounds = np.round(np.cumsum(weights) / weights.sum() * (total - n_parts * least)).astype(int)
    return list(np.diff(bounds, prepend=0) + least)


def make_schema(options):
    """The groups, with their rows in an average file. Ends the program if the numbers of datasets
    and groups are incompatible."""
    rng = np.random.default_rng([options.seed, 0])
    n_filled = options.datasets - round(options.datasets * options.empty)
    n_empty = options.datasets - n_filled
    n_empty_groups = min(round(options.groups * options.empty), options.groups - 4, n_empty)
    n_empty_groups = max(n_empty_groups, min(n_empty, 1))
    rest = n_filled - len(SPILL) - options.images
    least = len(IDS[0]) + 1
    n_tables = min(options.groups - 1 - n_empty_groups, rest // least)
    n_image_groups = min(options.images, 3, max(n_tables // 2, 1))
    if n_tables < 1:
        sys.exit(f"make_hep.py: {n_filled} datasets with rows are too few for /spill and "
                 f"{options.images} images; more --datasets or fewer --empty or --images")
    groups = [Group("spill", make_columns(rng, SPILL, 0), 1.0)]
    for i, count in enumerate(split(rng, rest, n_tables, least)):
        ids = IDS[i % len(IDS)] if count > len(IDS[i % len(IDS)]) else IDS[0]
        columns = make_columns(rng, ids, int(count) - len(ids))
        if i < n_image_groups:
            for k in range(i, options.images, n_image_groups):
                ratio = min(options.image_ratio * 2 ** rng.uniform(-1, 1), 800)
                columns.append(Column(f"cvnmap{k or ''}", "u1", options.image_width, ratio))
            groups.append(Group(f"rec.training.cvnmaps{i or ''}", columns, 1.0))
        else:
            rows = rng.lognormal(0, 0.7) * (LONG_GROUP if i % LONG_EVERY == 3 else 1)
            groups.append(Group(f"rec.{TABLES[i % len(TABLES)]}{i // len(TABLES) or ''}", columns,
                                rows))
    for i, count in enumerate(split(rng, n_empty, n_empty_groups, 1) if n_empty else []):
        name = f"mc.table{i}" if i else "neutrino"
        ids = IDS[0][:min(int(count), 3)]
        groups.append(Group(name, make_columns(rng, ids, int(count) - len(ids)), 0.0))
    return scale_rows(groups, options)


def row_bytes(group, images):
    return sum(np.dtype(c.dtype).itemsize * c.width for c in group.columns
               if (c.width > 1) == images)


def scale_rows(groups, options):
    """Scale the rows so that the files have --size raw bytes in total, --image-share of them in
    images."""
    per_file = options.size / options.files
    with_images = [group for group in groups if row_bytes(group, True)]
    others = [group for group in groups if not row_bytes(group, True)]
    share = options.image_share if with_images else 0.0
    image_rows = per_file * share / sum(row_bytes(g, True) for g in with_images) \
        if with_images else 0.0
    left = per_file * (1 - share) - sum(image_rows * row_bytes(g, False) for g in with_images)
    unit = max(left, 0) / sum(group.rows * row_bytes(group, False) for group in others)
    return [group._replace(rows=group.rows * (image_rows if row_bytes(group, True) else unit))
            for group in groups]


# --- contents

def runs_of(rng, n, share, length=16):
    """A mask that is set for about `share` of n rows, in runs of `length`."""
    return np.repeat(rng.random(n // length + 1) < share, length)[:n]


def make_floats(rng, n, dtype, ratio):
    """Numbers with random mantissas, and runs of missing values (NaN or 0) that determine the
    ratio. Deflate compresses a value to 0.94 and a missing one to 0.01 of its size (measured, 1
    MiB, level 6)."""
    values = (rng.standard_normal(n) * 10 ** rng.uniform(-1, 3)).astype(dtype)
    missing = np.clip((0.94 - 1 / ratio) / 0.93, 0, 1)
    values[runs_of(rng, n, missing)] = np.nan if rng.random() < 0.5 else 0
    return values


def make_integers(rng, n, dtype):
    values = np.full(n, rng.integers(0, 4), dtype)
    others = runs_of(rng, n, 0.05, 4)
    values[others] = rng.integers(0, 200, int(others.sum()))
    return values


def make_image(rng, n, column):
    """Rows of zeros with tracks of 3 to 8 cells. A track costs about 8 bytes, an empty cell 0.0012
    (measured in chunks of 128 rows of 1,024 cells)."""
    cells = np.zeros(n * column.width, "u1")
    n_tracks = int(max(1 / column.ratio - 0.0012, 0) / 8 * cells.size)
    if n_tracks and cells.size > 8:
        lengths = rng.integers(3, 9, n_tracks)
        before = np.cumsum(lengths) - lengths
        places = np.repeat(rng.integers(0, cells.size - 8, n_tracks) - before, lengths)
        places += np.arange(places.size)
        cells[places] = rng.geometric(0.03, places.size).clip(1, 255)
    return cells.reshape(n, column.width)


def counters(rng, parents):
    """Position of each row among the rows of its parent, from 0; parents are row numbers."""
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    return np.arange(parents.size) - np.repeat(starts, np.diff(starts, append=parents.size))


def make_ids(rng, n, names, place, spill_events):
    """Identifying columns of n rows: events of /spill in order, slices of an event counted from 1,
    and vertices and prongs counted from 0."""
    chosen = np.sort(rng.integers(0, spill_events.size, n))
    ids = {"run": np.full(n, place[0]), "subrun": np.full(n, place[1]), "evt": spill_events[chosen]}
    # A row either starts the next slice (vertex) of its event (slice) or belongs to the last one.
    parents = chosen
    for name, start in (("subevt", 1), ("vtxid", 0), ("npng", 0)):
        if name not in names:
            break
        if name == names[-1]:
            ids[name] = counters(rng, parents) + start
            break
        first = counters(rng, parents) == 0
        opens = first | (rng.random(n) < 0.6)
        total = np.cumsum(opens)
        ids[name] = total - np.repeat(total[first], np.diff(np.flatnonzero(first), append=n)) \
            + start
        parents = total
    return ids


def make_column(rng, n, column, ids, options):
    if column.name in ids:
        return ids[column.name].astype(column.dtype)
    if column.width > 1 or column.ratio:
        return make_image(rng, n, column)
    if column.dtype[0] == "f":
        return make_floats(rng, n, column.dtype, options.float_ratio)
    return make_integers(rng, n, column.dtype)


# --- files

def place_of(index):
    """Run and subrun of a file."""
    return FIRST_RUN + index // SUBRUNS_PER_RUN, index % SUBRUNS_PER_RUN


def file_name(index):
    run, subrun = place_of(index)
    return f"hep_r{run:05d}_s{subrun:02d}.h5"


def file_factors(options):
    """Length of each file relative to the mean, evenly spread on a logarithmic scale."""
    rng = np.random.default_rng([options.seed, 1])
    factors = FILE_FACTOR ** np.linspace(-0.5, 0.5, options.files)
    return rng.permutation(factors / factors.mean())


def creation_list(lists, column):
    """The dataset creation property list, made once for each chunk shape."""
    if column.width not in lists:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_chunk((CHUNK_ROWS, column.width))
        properties.set_deflate(LEVEL)
        lists[column.width] = properties
    return lists[column.width]


def write_column(group, column, values, lists):
    """Write one column. @returns encoded bytes. As in real files, images cannot grow, unless a
    chunk larger than the dataset makes HDF5 require it."""
    n_rows = len(values)
    limit = n_rows if column.width > 1 and n_rows >= CHUNK_ROWS else h5s.UNLIMITED
    space = h5s.create_simple((n_rows, column.width), (limit, column.width))
    dataset = h5d.create(group, column.name.encode(), h5t.py_create(np.dtype(column.dtype)), space,
                         creation_list(lists, column))
    if n_rows == 0:
        return 0
    dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values).reshape(n_rows, column.width))
    return dataset.get_storage_size()


def write_file(work):
    """Make one file. @returns its numbers."""
    options, groups, index, factor = work
    rng = np.random.default_rng([options.seed, 2, index])
    path = pathlib.Path(options.folder) / file_name(index)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(
        h5f.LIBVER_EARLIEST if options.libver == "earliest" else h5f.LIBVER_V110, h5f.LIBVER_V110)
    file = h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fapl=access)
    lists = {}
    spill_events, n_empty, checksum = None, 0, 0
    numbers = {key: 0 for key in ("column_raw", "column_stored", "image_raw", "image_stored")}
    for group in groups:
        wobble = rng.lognormal(0, 0.1) if group.name != "spill" else 1
        n_rows = round(group.rows * factor * wobble)
        if group.name == "spill":
            n_rows = max(n_rows, 1)
            spill_events = np.cumsum(rng.geometric(0.02, n_rows))
            ids = {"run": np.full(n_rows, place_of(index)[0]),
                   "subrun": np.full(n_rows, place_of(index)[1]), "evt": spill_events}
        else:
            names = [column.name for column in group.columns if column.name in ID_TYPES]
            ids = make_ids(rng, n_rows, names, place_of(index), spill_events)
        target = h5g.create(file, group.name.encode())
        for column in group.columns:
            values = make_column(rng, n_rows, column, ids, options)
            stored = write_column(target, column, values, lists)
            kind = "image" if column.width > 1 else "column"
            numbers[kind + "_raw"] += values.nbytes
            numbers[kind + "_stored"] += stored
            n_empty += n_rows == 0
            checksum = zlib.crc32(values, checksum)
    file.close()
    return {"file": path.name, "n_empty": n_empty, "file_bytes": path.stat().st_size,
            "crc32": checksum, **numbers}


def make_set(options):
    """Make the files and list.txt. @returns the summary's numbers."""
    start_s = time.monotonic()
    groups = make_schema(options)
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    factors = file_factors(options)
    works = [(options, groups, i, factors[i]) for i in range(options.files)]
    if options.jobs > 1:
        with multiprocessing.Pool(options.jobs) as pool:
            files = pool.map(write_file, works, chunksize=max(options.files // 64, 1))
    else:
        files = [write_file(work) for work in works]
    lines = [f"{folder.resolve() / file['file']}\n" for file in files]
    (folder / "list.txt").write_text("".join(lines))
    total = {key: sum(file[key] for file in files) for key in files[0] if key != "file"}
    n_datasets = sum(len(group.columns) for group in groups)
    crc = zlib.crc32(b"".join(file["crc32"].to_bytes(4, "little") for file in files))
    return {"files": len(files), "groups": len(groups), "datasets": n_datasets,
            "images": sum(c.width > 1 for g in groups for c in g.columns),
            "empty_share": total["n_empty"] / (n_datasets * len(files)),
            "raw_bytes": total["column_raw"] + total["image_raw"],
            "stored_bytes": total["column_stored"] + total["image_stored"],
            "column_raw_bytes": total["column_raw"], "image_raw_bytes": total["image_raw"],
            "column_ratio": total["column_raw"] / max(total["column_stored"], 1),
            "image_ratio": total["image_raw"] / max(total["image_stored"], 1),
            "file_bytes": total["file_bytes"],
            "largest_over_smallest": max(file["column_raw"] + file["image_raw"] for file in files)
            / min(file["column_raw"] + file["image_raw"] for file in files),
            "content_crc32": f"{crc:08x}", "seed": options.seed,
            "seconds": time.monotonic() - start_s}


def summary_text(numbers):
    mb = {key: numbers[key] / 1e6 for key in numbers if key.endswith("_bytes")}
    ratio = numbers["raw_bytes"] / max(numbers["stored_bytes"], 1)
    return (f"{numbers['files']} files, each of {numbers['groups']} groups and "
            f"{numbers['datasets']} datasets ({numbers['images']} images); "
            f"{100 * numbers['empty_share']:.1f} % of the datasets are empty\n"
            f"raw {mb['raw_bytes']:.1f} MB ({mb['column_raw_bytes']:.1f} in columns, "
            f"{mb['image_raw_bytes']:.1f} in images), stored {mb['stored_bytes']:.1f} MB, ratio "
            f"{ratio:.2f} (columns {numbers['column_ratio']:.2f}, images "
            f"{numbers['image_ratio']:.0f}); files {mb['file_bytes']:.1f} MB, the longest "
            f"{numbers['largest_over_smallest']:.1f} times the shortest\n"
            f"contents {numbers['content_crc32']}, seed {numbers['seed']}, "
            f"{numbers['seconds']:.1f} s")


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="made if it is not there; gets the files and list.txt")
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--datasets", type=int, default=2000, help="of each file")
    parser.add_argument("--groups", type=int, help="of each file; default: a 16th of the datasets")
    parser.add_argument("--empty", type=float, default=0.84, help="share of datasets without rows")
    parser.add_argument("--images", type=int, default=6, help="datasets of (rows, width) bytes")
    parser.add_argument("--image-width", type=int, default=1024)
    parser.add_argument("--image-share", type=float, default=0.2, help="of the raw bytes")
    parser.add_argument("--image-ratio", type=float, default=200.0,
                        help="raw over encoded bytes; each image has half to twice as much")
    parser.add_argument("--float-ratio", type=float, default=3.0,
                        help="the same of floats, in chunks of 1 MiB; it is less in the files")
    parser.add_argument("--size", type=bytes_of, default=846e6, help="raw bytes of all files")
    parser.add_argument("--libver", choices=["earliest", "v110"], default="earliest",
                        help="of the files' format; earliest has chunk indexes like NOvA's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", metavar="FILE", help="the summary's numbers")
    options = parser.parse_args(arguments)
    if options.groups is None:
        options.groups = max(options.datasets // 16, 5)
    if options.files < 1 or options.groups < 4 or not 0 <= options.empty < 1:
        parser.error("needs a file, four groups, and a share of empty datasets below 1")
    if options.images < 0 or options.image_width < 2 or not 0 <= options.image_share < 1:
        parser.error("--images, --image-width (at least 2) or --image-share is out of range")
    if options.float_ratio < 1 or options.image_ratio < 1 or options.size <= 0:
        parser.error("ratios must be at least 1, and --size above 0")
    return options


def main():
    options = parse()
    numbers = make_set(options)
    print(summary_text(numbers))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
