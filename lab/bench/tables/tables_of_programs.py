"""Tables of programs on parallel HDF5, by HDF5 itself and served: results of hdf5_programs.py. See
tables_of_outputs.py.
"""

from table_parts import lines, percent, table, unique
from tables_of_outputs import of_method, seconds, storage


def with_ratio(row, strong=False):
    return f"{seconds(row, strong)}, {float(row['ratio']):.1f}x"


def over(one, other):
    return f"{float(one['median_s']) / float(other['median_s']):.1f}"


@table("lab/bench/results/README.md", "hdf5_fields.csv")
def hdf5_fields(rows):
    made = []
    for ranks, data, limit in unique((row["ranks"], row["data"], row["W_MBps_per_rank"])
                                     for row in rows):
        def of(method):
            return of_method(rows, method, ranks=ranks, data=data, W_MBps_per_rank=limit)
        plain, sz3, trz = (of(method) for method in
                           ("hdf5-collective-none", "hdf5-collective-sz3", "hdf5-unchanged-trz"))
        own = of("tailrace-claimed-trz")
        made.append([f"{ranks}, {storage(limit, ' a rank')}, {data}", seconds(plain),
                     with_ratio(of("hdf5-collective-deflate")), with_ratio(sz3),
                     with_ratio(of("hdf5-unchanged")), with_ratio(of("hdf5-unchanged-sz3")),
                     with_ratio(trz, True), over(plain, trz), over(sz3, trz),
                     f"{seconds(own)}: {float(trz['median_s']) / float(own['median_s']):.2f}"])
    return lines(["ranks, storage, fields", "plain", "HDF5's deflate, level 1", "HDF5's SZ3 filter",
                  "unchanged, lossless", "unchanged, SZ3", "**unchanged, trz**", "x plain",
                  "x HDF5's SZ3", "Tailrace's own API, trz: of its time"], made)


@table("lab/bench/results/README.md", "hdf5_calls.csv")
def hdf5_calls(rows):
    """A small write per call, many datasets from H5Fcreate to H5Fclose; least to greatest."""
    made = []
    for what, ranks in unique((row["what"], row["ranks"]) for row in rows):
        parts = ["write_s"] if "H5Dwrite" in what else ["close_s", "total_s"]
        for part in parts:
            cells, medians = [], []
            for method in ("plain", "served", "served-none"):
                row = of_method(rows, method, what=what, ranks=ranks)
                unit, scale = ("us", 1e6 / float(row["n"])) if part == "write_s" else ("ms", 1e3)
                least, most = (scale * float(row[f"{part}_{end}"]) for end in ("least", "most"))
                medians.append(scale * float(row[part]))
                cells.append(f"{medians[-1]:.3g} {unit} ({least:.3g} to {most:.3g})")
            name = {"write_s": "a call", "close_s": "H5Fclose", "total_s": "all"}[part]
            made.append([f"{what}: {name}", ranks, *cells, f"{medians[1] / medians[0]:.2f}",
                         f"{medians[2] / medians[0]:.2f}"])
    return lines(["", "ranks", "plain", "unchanged, lossless", "unchanged, codec=none",
                  "lossless / plain", "none / plain"], made)


@table("lab/bench/results/README.md", "hdf5_plotfiles.csv")
def hdf5_plotfiles(rows):
    made = []
    for ranks, limit in unique((row["ranks"], row["W_MBps_per_rank"]) for row in rows):
        cells, mine = [], {}
        for method in ("plain", "amrex-deflate", "amrex-sz3", "served", "served-trz"):
            row = of_method(rows, method, ranks=ranks, W_MBps_per_rank=limit)
            mine[method] = row
            ratio = float(row["raw_bytes"]) / float(row["file_bytes"])
            cells.append(f"{float(row['median_s']):.3g} s ({percent(row['spread'])})"
                         + ("" if method == "plain" else f", {ratio:.1f}x"))
        made.append([f"{ranks}, {storage(limit, ' a rank')}", *cells,
                     over(mine["amrex-sz3"], mine["served-trz"])])
    return lines(["ranks, storage", "plain", "AMReX's own: deflate", "AMReX's own: SZ3",
                  "unchanged, lossless", "unchanged, trz", "AMReX's SZ3 over trz"], made)
