"""Tables of outputs: writing, output during a computation, concatenation, PnetCDF programs.

Each function makes one table out of the rows of its CSVs (table_parts.table); lab/bench/all
measures their content.
"""

from table_parts import lines, percent, table, unique


# --- writing: lab/bench/all write

def storage(limit, each=""):
    return f"{float(limit):g} MB/s{each}" if float(limit) else "without a limit"


def seconds(row, strong=False):
    """Median and spread."""
    if row is None:
        return ""
    text = f"{float(row['median_s']):.2f} s"
    text = f"**{text}**" if strong else text
    return text + (f" ({percent(row['spread'])})" if row["spread"] else "")


def of_method(rows, method, **keys):
    """The row of a method whose other columns have these values, or None."""
    found = [row for row in rows if row["method"] == method
             and all(row[key] == str(value) for key, value in keys.items())]
    if len(found) > 1:
        raise ValueError(f"{len(found)} rows of {method}, {keys}")
    return found[0] if found else None


@table("README.md", "write.csv")
def front(rows):
    made = []
    for limit in ("50", "100", "0"):
        keys = {"part": "codec", "ranks": 2, "chunk": "64^3", "W_MBps": limit}
        whole = [of_method(rows, method, **keys) for method in
                 ("hdf5-collective-none", "hdf5-collective-sz3", "tailrace-claimed-sz3")]
        cells = [f"{float(row['median_s']):.2f} s" for row in whole]
        where = f"storage of {limit} MB/s" if limit == "50" else storage(limit)
        made.append([where, *cells[:2], f"**{cells[2]}**"])
    size = float(whole[0]["raw_bytes"]) / 1e6
    return lines([f"2 ranks, {size:.0f} MB of fields, fsync inside", "uncompressed HDF5",
                  "HDF5 with SZ3", "**Tailrace, SZ3**"], made)


def compared(rows, codec, chunk, name):
    """Rows by storage and number of ranks: HDF5, HDF5 with the codec, ours, the ideal."""
    mine = [row for row in rows if row["part"] == "codec" and row["chunk"] == chunk]
    cases = unique((row["ranks"], row["W_MBps"]) for row in mine
                   if row["method"] == f"tailrace-claimed-{codec}")
    made = []
    for ranks, limit in cases:
        keys = {"ranks": ranks, "W_MBps": limit}
        methods = ["hdf5-collective-none", f"hdf5-collective-{codec}",
                   f"tailrace-claimed-{codec}", f"ideal-{codec}"]
        cells = [seconds(of_method(mine, method, **keys), "tailrace" in method)
                 for method in methods]
        made.append([f"{ranks}, {storage(limit)}", *cells])
    return lines(["ranks, storage", "HDF5 uncompressed", f"HDF5 {name}, collective",
                  f"**Tailrace {name}**", "ideal: same codec, perfect overlap"], made)


@table("docs/performance.md", "write.csv")
def writing(rows):
    return compared(rows, "sz3", "64^3", "SZ3")


@table("docs/performance.md", "write.csv")
def writing_trz(rows):
    return compared(rows, "trz", "128^3", "trz")


@table("docs/performance.md", "write.csv")
def writing_bounds(rows):
    """The absolute bounds of Jin et al. 2022, on generated and on real fields."""
    mine = [row for row in rows if row["part"] == "bounds"]
    names = {"hdf5-independent-none": "HDF5 uncompressed, independent",
             "hdf5-collective-sz3": "HDF5 SZ3, collective",
             "tailrace-claimed-sz3": "Tailrace SZ3", "tailrace-claimed-trz": "Tailrace trz",
             "tailrace-claimed-auto": "**Tailrace, codec=auto**"}
    sets = unique(row["data"] for row in mine)
    made = []
    for method, name in names.items():
        cells = []
        for one in sets:
            row = of_method(mine, method, data=one)
            ratio = f", ratio {float(row['ratio']):.1f}" if row["ratio"] else ""
            cells.append(f"{float(row['median_s']):.3f} s ({percent(row['spread'])}){ratio}")
        made.append([name, *cells])
    factors = []
    for one in sets:
        auto, *others = (float(of_method(mine, method, data=one)["median_s"]) for method in
                         ("tailrace-claimed-auto", "hdf5-independent-none", "hdf5-collective-sz3"))
        factors.append(", ".join(f"{other / auto:.1f} x" for other in others))
    made.append(["auto over uncompressed, over HDF5 SZ3", *factors])
    return lines(["", *sets], made)


@table("lab/bench/results/README.md", "write.csv")
def writing_rows(rows):
    made = []
    mine = [row for row in rows if row["part"] == "codec" and row["method"].endswith("-sz3")
            or row["method"] == "hdf5-collective-none"]
    cases = unique((row["ranks"], row["chunk"], row["W_MBps"]) for row in mine
                   if row["method"] == "tailrace-claimed-sz3")
    for ranks, chunk, limit in cases:
        keys = {"part": "codec", "ranks": ranks, "chunk": chunk, "W_MBps": limit}
        plain, native, ours, ideal = (of_method(mine, method, **keys) for method in (
            "hdf5-collective-none", "hdf5-collective-sz3", "tailrace-claimed-sz3", "ideal-sz3"))
        cells = [f"{float(row['median_s']):.3f} ({percent(row['spread'])})"
                 for row in (native, ours, ideal)]
        made.append([ranks, chunk, storage(limit), f"{float(plain['median_s']):.3f}", *cells,
                     *(f"{float(ours[key]):.2f}" for key in
                       ("over_hdf5", "over_ideal", "over_longer_lane")),
                     ours["file_bytes_beyond_hdf5"]])
    return lines(["ranks", "chunk", "storage", "hdf5 none", "hdf5 sz3", "claimed sz3", "ideal sz3",
                  "x hdf5", "/ ideal", "/ lane", "file, B vs hdf5"], made)


# --- output during the computation: lab/bench/papers/in_situ.py

def milliseconds(text):
    value = 1e3 * float(text)
    size = abs(value)
    return f"{value:.0f}" if size >= 9.95 else f"{value:.1f}" if size >= 0.95 else f"{value:.2f}"


def in_situ_cases(rows):
    """Yield for each configuration and limit: text, whether it is the first limit, outputs."""
    for name in unique(row["configuration"] for row in rows):
        mine = [row for row in rows if row["configuration"] == name]
        limits = unique(row["W_MB_per_s_and_rank"] for row in mine if row["output"] != "none")
        for limit in limits:
            if limit == "unlimited":
                continue
            yield name, limit, limit == limits[0], {
                row["output"]: row for row in mine if row["W_MB_per_s_and_rank"] == limit}


@table("docs/performance.md", "in_situ.csv")
def beside(rows):
    made, last = [], ""
    for name, limit, is_first, outputs in in_situ_cases(rows):
        some, label = outputs["in_situ"], ""
        if is_first:
            application = name.partition("-")[0]
            label = f"{float(some['S_MB_per_step_and_rank']):.1f} MB, " \
                f"{1e3 * float(some['compute_s_per_step']):.0f} ms"
            if application == last:
                label = f"{application}, 2 ranks on 2 cores: {label}"
            elif some["ranks"] == "1":
                label = f"{application}, 1 rank and a free core: {label} of computation"
            else:
                label = f"{application}, {some['ranks']} ranks on 2 cores: {label}"
        cells = [milliseconds(outputs[key]["overhead_s_per_step"])
                 for key in ("hdf5", "async none", "sync", "in_situ")]
        made.append([label, f"{limit} MB/s", *cells[:3], f"**{cells[3]}**"])
    return lines(["simulation, per step and rank", "W", "HDF5 uncompressed",
                  "asynchronous, uncompressed", "Tailrace sync, trz",
                  "**Tailrace in_situ, trz**"], made)


def gain(other, mine):
    ours = float(mine["overhead"])
    factor = float(other["overhead"]) / ours if ours > 0 else None
    return "-" if factor is None else f"{factor:.0f} x" if factor >= 9.95 else f"{factor:.1f} x"


@table("lab/bench/results/README.md", "in_situ.csv")
def in_situ(rows):
    grids = {"cosmo": "cosmo 64^3, 1 rank", "plasma": "plasma 256^2, 1 rank",
             "cosmo-2": "cosmo, 2 ranks", "plasma-2": "plasma, 2 ranks"}
    made = []
    for name, limit, is_first, outputs in in_situ_cases(rows):
        some = outputs["in_situ"]
        size = f"{float(some['S_MB_per_step_and_rank']):.1f} MB, " \
            f"{1e3 * float(some['compute_s_per_step']):.0f} ms, {float(some['R']):.0f}"
        made.append([*([grids.get(name, name), size] if is_first else ["", ""]), f"{limit} MB/s",
                     *(milliseconds(outputs[key]["overhead_s_per_step"]) for key in
                       ("hdf5", "sync none", "async none", "sync", "async", "in_situ")),
                     f"{gain(outputs['sync none'], some)}, {gain(outputs['async none'], some)}"])
    return lines(["", "S, computation, R", "W", "HDF5", "sync, raw", "async, raw", "sync", "async",
                  "in_situ", "gain over sync raw, async raw"], made)


# --- concatenation: lab/bench/papers/concat.py

@table("docs/performance.md", "concat_compare.csv")
def concat(rows):
    return compared_concat(rows)


@table("lab/bench/results/README.md", "concat_compare.csv")
def concat_compare(rows):
    return compared_concat(rows)


@table("lab/bench/results/README.md", "concat_compare_1_rank.csv")
def concat_one_rank(rows):
    return compared_concat(rows)


def compared_concat(rows):
    made = []
    for ranks in unique(row["ranks"] for row in rows):
        mine = {row["method"]: row for row in rows if row["ranks"] == ranks}

        def cell(method):
            if method not in mine:
                return ""
            row = mine[method]
            text = f"{float(row['total_s']):.1f} ({percent(row['spread'])})"
            return text + ("" if method == "baseline" else f": {float(row['times_faster']):.1f} x")

        sizes = [float(mine[method]["output_bytes"]) / 1e6 for method in ("baseline", "tailrace")]
        made.append([ranks, *map(cell, ("baseline", "tailrace", "tailrace threads")),
                     ", ".join(f"{size:.1f}" for size in sizes)])
    return lines(["ranks", "collective HDF5, s", "tailrace, one thread a rank",
                  "tailrace, all cores", "output MB: HDF5, ours"], made)


@table("lab/bench/results/README.md", "concat_scaling.csv")
def concat_scaling(rows):
    return lines(["files x datasets", "raw MB", "s (spread)", "us per file and dataset",
                  "peak resident MB of a rank"],
                 [[f"{row['files']} x {row['datasets']}", f"{float(row['raw_bytes']) / 1e6:.0f}",
                   f"{float(row['total_s']):.2f} ({percent(row['spread'])})",
                   f"{float(row['us_per_file_and_dataset']):.1f}",
                   f"{float(row['peak_rss_bytes']) / 1e6:.0f}"] for row in rows])


# --- programs of PnetCDF: lab/bench/papers/transparent.py, lab/bench/all variables

def timed(row):
    return f"{float(row['total_s']):.2f} ({percent(row['spread'])}, " \
        f"{float(row['times_faster']):.2f}x)"


READING = {"P_original": "`P_original`", "P_independent": "`P_independent`",
           "P_trz": "**`P_trz`, lossless**", "T_trz": "`T_trz`, lossless",
           "P_trz_0.01": "**`P_trz_0.01`**", "T_trz_0.01": "`T_trz_0.01`",
           "H_original": "`H_original`", "H_filtered": "`H_filtered`, lossless"}


@table("lab/bench/results/README.md", "transparent_read.csv")
def reading(rows):
    applications = unique(row["application"] for row in rows)
    made = []
    for limit in unique(row["limit_MBps"] for row in rows):
        for method, name in READING.items():
            cells = [timed(of_method(rows, method, limit_MBps=limit, application=application))
                     for application in applications]
            made.append([storage(limit), name, *cells])
    return lines(["W a rank", "", *applications], made)


@table("docs/performance.md", "transparent_read.csv")
def reading_gains(rows):
    made = []
    for application in unique(row["application"] for row in rows):
        for limit in unique(row["limit_MBps"] for row in rows):
            keys = {"application": application, "limit_MBps": limit}
            base = min((of_method(rows, name, **keys) for name in ("P_original", "P_independent")),
                       key=lambda row: float(row["total_s"]))
            cells = []
            for method in ("P_trz", "P_trz_0.01"):
                row = of_method(rows, method, **keys)
                cells.append(f"{float(row['total_s']):.2f} s, {float(row['times_faster']):.1f} x "
                             f"({percent(row['spread'])})")
            made.append([application, storage(limit, " a rank"),
                         f"{float(base['total_s']):.2f} s", *cells])
    return lines(["analysis", "storage", "PnetCDF, uncompressed", "without loss",
                  "within 0.01 K"], made)


def file_size(row):
    sizes = [float(row[key]) / 1e6 for key in ("file_bytes", "disk_bytes")]
    return f"{sizes[0]:.0f} ({sizes[1]:.0f})"


@table("lab/bench/results/README.md", "transparent_write.csv")
def writing_pnetcdf(rows):
    ranks = unique(row["ranks"] for row in rows)
    made = []
    for limit in unique(row["limit_MBps"] for row in rows):
        for method in unique(row["method"] for row in rows):
            mine = [of_method(rows, method, limit_MBps=limit, ranks=n) for n in ranks]
            made.append([storage(limit), f"`{method}`", *map(timed, mine), file_size(mine[-1])])
    return lines(["W a rank", "", *(f"{n} rank{'s' * (n != '1')}" for n in ranks),
                  "file, MB (on disk)"], made)


@table("docs/performance.md", "transparent_write.csv")
def writing_gains(rows):
    """Gains of layout claimed, the default."""
    ranks = unique(row["ranks"] for row in rows)
    made = []
    for limit in unique(row["limit_MBps"] for row in rows):
        mine = [of_method(rows, "P_claimed", limit_MBps=limit, ranks=n) for n in ranks]
        made.append([storage(limit, " a rank"),
                     *(f"{float(row['times_faster']):.1f} x ({percent(row['spread'])})"
                       for row in mine)])
    return lines(["writing without loss", *(f"{n} rank{'s' * (n != '1')}" for n in ranks)], made)


@table("lab/bench/results/README.md", "transparent_chunks.csv")
def writing_chunks(rows):
    sizes = unique(row["chunk_bytes"] for row in rows)

    def size_text(n_bytes):
        return f"{n_bytes >> 10} KiB" if n_bytes < 1 << 20 else f"{n_bytes >> 20} MiB"

    made = [[f"`{method}`", *(timed(of_method(rows, method, chunk_bytes=size)) for size in sizes)]
            for method in unique(row["method"] for row in rows)]
    return lines(["", *(size_text(int(size)) for size in sizes)], made)


@table("lab/bench/results/README.md", "transparent_md.csv")
def md(rows):
    made = []
    for row in rows:
        ratio = f"{float(row['ratio']):.2f}" if float(row["ratio"]) else ""
        made.append([f"`{row['method']}`",
                     f"{float(row['total_s']):.2f} ({percent(row['spread'])})",
                     f"{float(row['write_s']):.2f}", ratio])
    return lines(["", "all iterations, s", "of it in the output, s", "times smaller"], made)


@table("lab/bench/results/README.md", "e3sm.csv")
def e3sm(rows):
    """The real library and ours, by case, ranks and storage."""
    made = []
    for case, ranks in unique((row["case"], row["ranks"]) for row in rows):
        for limit in unique(row["W_MB_per_s_and_rank"] for row in rows):
            real, ours = (next(row for row in rows if (
                row["case"], row["ranks"], row["W_MB_per_s_and_rank"], row["library"]) ==
                (case, ranks, limit, library)) for library in ("pnetcdf", "tailrace"))
            made.append([
                f"{case}, {ranks} ranks",
                f"{int(float(real['pieces'])):,}",
                "none" if limit == "unlimited" else f"{limit} MB/s",
                *(f"{float(row['total_s']):.2f} ({percent(row['total_s_spread'])})"
                  for row in (real, ours)),
                *(f"{float(row['cpu_s']):.2f}" for row in (real, ours)),
                ", ".join(f"{float(row['memory_bytes']) / 1e6:.0f}" for row in (real, ours))])
    return lines(["case", "pieces a rank", "W a rank", "real, s", "**ours**, s", "real, CPU s",
                  "ours, CPU s", "memory a rank, MB"], made)


@table("lab/bench/results/README.md", "rechunk.csv")
def rechunk(rows):
    """Rechunking: the tools by direction and memory setting."""
    made = []
    for row in rows:
        memory = f"{float(row['memory_bytes']) / 1e6:.0f}" if row["memory_bytes"] else "no option"
        tool = f"**{row['tool']}**" if row["tool"] == "tailrace" else row["tool"]
        made.append([row["direction"], tool, memory,
                     f"{float(row['resident_bytes']) / 1e6:.0f}",
                     f"{float(row['s']):.1f} ({percent(row['s_spread'])})",
                     f"{float(row['cpu_s']):.1f}",
                     f"{float(row['raw_bytes']) / float(row['s']) / 1e6:.0f}"])
    return lines(["", "tool", "memory asked, MB", "taken, MB", "s", "CPU s", "MB/s"], made)


@table("lab/bench/results/README.md", "cmip7.csv")
def cmip7(rows):
    """Files for CMIP7: its own tool, and Tailrace with and without a sync."""
    def peer(row):
        copied = ", chunks copied" if row["case"].endswith("copied") else ""
        return next(peer for peer in rows if peer["case"] == "cmip7repack" + copied)

    made = [[row["case"].replace("tailrace", "**tailrace**"),
             f"{float(row['s']):.2f} ({percent(row['s_spread'])})", f"{float(row['cpu_s']):.2f}",
             f"{float(row['raw_bytes']) / float(row['s']) / 1e6:.0f}",
             f"{float(row['file_bytes']) / 1e6:.1f}",
             f"{float(peer(row)['s']) / float(row['s']):.1f}"] for row in rows]
    return lines(["", "s", "CPU s", "MB/s", "file, MB", "times as fast"], made)


@table("docs/performance.md", "xarray_dask.csv")
def xarray_dask(rows):
    """Writing and reading through dask, with the range of the rounds."""
    raw = float(rows[0]["bytes"]) * float(rows[0]["ratio"])

    def timed_by(row, what):
        median, least, greatest = (float(row[f"{what}_{end}"])
                                   for end in ("s", "least_s", "greatest_s"))
        return [f"{median:.3g} ({least:.3g} to {greatest:.3g})", f"{raw / median / 1e6:.0f}",
                f"{float(row[f'{what}_times_faster']):.1f}"]

    made = [[row["method"], f"{float(row['ratio']):.2f}", *timed_by(row, "write"),
             *timed_by(row, "read")] for row in rows]
    return lines(["", "ratio", "write, s", "MB/s", "times netCDF4", "read, s", "MB/s",
                  "times netCDF4"], made)


@table("docs/performance.md", "variables.csv")
def variables(rows):
    """CPU time per variable: in the close of the file, and in all calls."""
    def cell(row, key):
        if row is None or not row[f"{key}_cpu_ms"]:
            return ""
        spread = f" ({percent(row[f'{key}_spread'])})" if row[f"{key}_spread"] else ""
        return f"{float(row[f'{key}_cpu_ms']):.2f} ms{spread}"

    made = []
    for n in unique(row["variables"] for row in rows):
        mine = [of_method(rows, method, variables=n) for method in ("PnetCDF", "Tailrace")]
        made.append([f"{int(n):,}", *(cell(row, key) for row in mine for key in ("close", "all"))])
    return lines(["variables", "PnetCDF, close", "all calls", "**Tailrace**, close", "all calls"],
                 made)


@table("docs/performance.md", "session.csv")
def session(rows):
    """Date and place of each part's measurement."""
    made = [[row["part"], row["date"], row["build"], row["machine"], row["storage"],
             f"{row['load_before']} to {row['load_after']}"] for row in rows]
    return lines(["part", "date", "build", "machine", "storage", "load average"], made)
