"""Tables and annotated matrices: PyTables, pandas, AnnData, NWB, MATLAB."""

import json
import pathlib

import numpy as np

from community import Community, community, rng, wave


@community
class PyTables(Community):
    name = "PyTables: tables with indexes, arrays"
    writer = reader = "tables"
    values = ("/ea", "/ca")

    def write(self, path):
        import tables as tb

        class Row(tb.IsDescription):
            x = tb.Float64Col()
            i = tb.Int32Col()
            s = tb.StringCol(6)

        with tb.open_file(path, "w") as file:
            table = file.create_table("/", "table", Row, "particles")
            table.append([(i, b"r%d" % i, float(i) / 3) for i in range(20000)])
            table.flush()
            table.cols.i.create_csindex()
            table.cols.x.create_index()
            packed = file.create_table("/", "packed", Row, filters=tb.Filters(5, "blosc2"))
            packed.append([(i, b"r%d" % i, float(i)) for i in range(20000)])
            array = file.create_earray("/", "ea", tb.Float32Atom(), (0, 8), expectedrows=5000)
            array.append(wave(5000, 8).astype("f4"))
            file.create_carray("/", "ca", obj=wave(100, 100), filters=tb.Filters(1, "zlib"))
            lists = file.create_vlarray("/", "vl", tb.ObjectAtom())
            for i in range(20):
                lists.append({"k": i})
            file.create_array("/", "complex", wave(80, 80) + 1j)
            file.create_array("/", "flags", wave(70, 1000) > 10)
            file.create_soft_link("/", "link", "/table")
            file.set_node_attr("/table", "note", {"a": (1, 2)})

    def read(self, path):
        import tables as tb

        found = {}
        with tb.open_file(path) as file:
            for node in file.walk_nodes("/", "Leaf"):
                if isinstance(node, tb.VLArray):
                    found[node._v_pathname] = np.array(json.dumps(node[:]))
                elif not node._v_pathname.startswith("/_i_"):
                    found[node._v_pathname] = node[:]
            table = file.root.table
            found["indexed"] = np.sort(table.get_where_list("(i > 100) & (x < 90)"))
            found["by index"] = table.read_sorted("i", field="x", start=5, stop=500)
            assert table.cols.i.index.is_csi and file.get_node_attr("/table", "note") == {
                "a": (1, 2)}
            assert file.root.link().nrows == 20000
        return found


@community
class PandasTable(Community):
    """HDFStore, format table, as dask and many pipelines write it."""
    name = "pandas HDFStore, format table"
    writer = reader = "pandas"

    def write(self, path):
        import pandas as pd

        n = 8000
        frame = pd.DataFrame({"a": wave(n), "b": rng().integers(0, 9, n),
                              "c": rng().choice(["x", "yy", "zzz"], n),
                              "d": pd.date_range("2020", periods=n, freq="h")})
        with pd.HDFStore(path, "w") as store:
            store.put("rows", frame, format="table", data_columns=["b", "c"])
            store.append("packed", frame[["a", "b"]], complevel=5, complib="zlib")
            store.put("multi", frame.set_index(["b", "c"])[["a"]], format="table")
            store.get_storer("rows").attrs.note = {"note": [1, 2]}

    def read(self, path):
        import pandas as pd

        found = {}
        with pd.HDFStore(path, "r") as store:
            frames = {key: store[key] for key in store.keys()}
            frames["chosen"] = store.select("rows", "b>5 & c='x'")
            assert store.get_storer("rows").attrs.note == {"note": [1, 2]}
        for key, frame in frames.items():
            found[f"{key}:index"] = np.array([str(i) for i in frame.index])
            for name in frame.columns:
                values = frame[name]
                found[f"{key}:{name}"] = (values.astype(str) if values.dtype.kind not in "if"
                                          else values).to_numpy().astype(
                                              None if values.dtype.kind in "if" else "U")
        return found


@community
class PandasFixed(Community):
    name = "pandas HDFStore, format fixed"
    writer = reader = "pandas"
    values = ("*:a", "/series:0")

    def write(self, path):
        import pandas as pd

        n = 8000
        frame = pd.DataFrame({"a": wave(n), "b": rng().integers(0, 9, n),
                              "d": pd.date_range("2020", periods=n, freq="h")})
        with pd.HDFStore(path, "w") as store:
            store.put("frame", frame)
            store.put("series", frame["a"])
            store.put("timed", frame.set_index("d")[["a"]])

    def read(self, path):
        import pandas as pd

        found = {}
        with pd.HDFStore(path, "r") as store:
            for key in store.keys():
                frame = store[key]
                frame = frame.to_frame(name="0") if frame.ndim == 1 else frame
                found[f"{key}:index"] = frame.index.astype(str).to_numpy().astype("U")
                for name in frame.columns:
                    values = frame[name].to_numpy()
                    found[f"{key}:{name}"] = values.astype("i8") if values.dtype.kind == "M" \
                        else values
        return found


@community
class AnnData(Community):
    name = "AnnData (h5ad)"
    writer = reader = "anndata"
    file = "in.h5ad"
    values = ("X", "layers/*", "obsm/X_pca")

    def write(self, path):
        import anndata
        import pandas as pd
        from scipy import sparse

        cells, genes = 400, 300
        made = rng()
        counts = sparse.random(cells, genes, 0.2, "csr", random_state=1, dtype="f4")
        obs = pd.DataFrame({"batch": pd.Categorical(made.choice(["a", "b"], cells)),
                            "n_genes": made.integers(0, 99, cells)},
                           index=[f"cell{i}" for i in range(cells)])
        var = pd.DataFrame({"symbol": [f"G{i}" for i in range(genes)]},
                           index=[f"gene{i}" for i in range(genes)])
        data = anndata.AnnData(counts, obs, var)
        data.layers["dense"] = wave(cells, genes).astype("f4")
        data.obsm["X_pca"] = made.normal(size=(cells, 30))
        data.obsm["spatial"] = made.uniform(0, 9, (cells, 2))
        data.obsp["neighbours"] = sparse.random(cells, cells, 0.05, "csr", random_state=2)
        data.uns["method"] = {"name": "test", "k": 15}
        data.write_h5ad(path)

    def read(self, path):
        import anndata

        data = anndata.read_h5ad(path)
        assert data.uns["method"]["name"] == "test"
        found = {"X": data.X.data, "X.indices": data.X.indices, "X.indptr": data.X.indptr,
                 "layers/dense": data.layers["dense"], "obsm/X_pca": data.obsm["X_pca"],
                 "obsm/spatial": data.obsm["spatial"],
                 "neighbours.indices": data.obsp["neighbours"].indices,
                 "names": np.array(list(data.obs_names) + list(data.var_names), "U"),
                 "batch": np.array(data.obs["batch"], "U"),
                 "symbol": np.array(data.var["symbol"], "U"),
                 "n_genes": data.obs["n_genes"].to_numpy()}
        backed = anndata.read_h5ad(path, backed="r")
        found["backed X"] = backed.X[5:40].indices
        backed.file.close()
        return found


@community
class NWB(Community):
    name = "NWB 2"
    writer = reader = "pynwb"
    file = "in.nwb"
    values = ("trace", "waveform")

    def write(self, path):
        import datetime

        from pynwb import NWBHDF5IO, NWBFile, TimeSeries

        made = rng()
        file = NWBFile("session", "id1",
                       datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))
        file.add_acquisition(TimeSeries("trace", wave(20000, 4).astype("f4"), "V",
                                        timestamps=np.cumsum(made.uniform(0, 1e-3, 20000))))
        file.add_acquisition(TimeSeries("regular", made.integers(-99, 99, 30000).astype("i2"), "V",
                                        rate=1000.0))
        file.add_unit_column("quality", "of the sorting")
        for i in range(40):
            file.add_unit(spike_times=np.cumsum(made.uniform(0, 0.1, 300)), quality="good",
                          waveform_mean=wave(200))
        file.add_trial_column("choice", "left or right")
        for i in range(50):
            file.add_trial(start_time=i * 1.1, stop_time=i * 1.1 + 1, choice="left")
        with NWBHDF5IO(path, "w") as io:
            io.write(file)

    def read(self, path):
        from pynwb import NWBHDF5IO

        with NWBHDF5IO(path, "r") as io:
            file = io.read()
            units = file.units
            return {"trace": file.acquisition["trace"].data[:],
                    "timestamps": file.acquisition["trace"].timestamps[:],
                    "regular": file.acquisition["regular"].data[:],
                    "spike times": units["spike_times"].target.data[:],
                    "spike index": units["spike_times"].data[:],
                    "of one unit": np.asarray(units["spike_times"][7]),
                    "waveform": np.stack(units["waveform_mean"][:]),
                    "quality": np.array(units["quality"][:], "U"),
                    "trials": np.stack([file.trials["start_time"][:], file.trials["stop_time"][:]]),
                    "choice": np.array(file.trials["choice"][:], "U")}


@community
class Matlab(Community):
    """MATLAB v7.3: a user block of 512 bytes, columns first, cells by references."""
    name = "MATLAB v7.3"
    writer = reader = "hdf5storage"
    file = "in.mat"
    values = ("field", "in struct")

    def write(self, path):
        import hdf5storage

        hdf5storage.savemat(path, {
            "field": wave(120, 90), "ids": np.arange(20000), "flag": wave(30, 30) > 10,
            "title": "größe", "cells": np.array(["a", "bc", "def"], object),
            "z": wave(90, 80) * 1j,
            "s": {"inner": wave(3000), "time": np.cumsum(wave(3000))}},
            format="7.3", truncate_existing=True)

    def read(self, path):
        import hdf5storage

        assert pathlib.Path(path).read_bytes()[:6] == b"MATLAB"
        found = hdf5storage.loadmat(path)
        inner = found["s"]
        inner = inner if isinstance(inner, dict) else {name: inner[name].ravel()[0]
                                                       for name in inner.dtype.names}
        return {"field": found["field"], "ids": found["ids"], "flag": found["flag"],
                "title": np.array(found["title"], "U"), "z": found["z"],
                "cells": np.array([str(np.asarray(c).ravel()[0]) for c in found["cells"].ravel()]),
                "in struct": np.asarray(inner["inner"], "f8").ravel(),
                "time": np.asarray(inner["time"], "f8").ravel()}


@community
class Mat73(Matlab):
    name = "MATLAB v7.3"
    reader = "mat73"

    def read(self, path):
        import mat73

        found = mat73.loadmat(path)
        return {"field": found["field"], "ids": np.asarray(found["ids"]),
                "flag": np.asarray(found["flag"]), "in struct": np.asarray(found["s"]["inner"]),
                "time": np.asarray(found["s"]["time"])}
