"""Measurements and climate: NeXus, xarray, HDF-EOS5."""

import numpy as np

from community import Community, community, rng, wave


@community
class NeXus(Community):
    name = "NeXus"
    writer = reader = "nexusformat"
    file = "in.nxs"
    values = ("counts", "temperature")

    def write(self, path):
        from nexusformat.nexus import NXdata, NXentry, NXfield, NXlog, NXroot

        counts = NXfield(wave(200, 150), name="counts")
        axes = (NXfield(np.linspace(0, 20, 200), name="energy", units="meV"),
                NXfield(np.sort(rng().uniform(-3, 3, 150)), name="q", units="1/angstrom"))
        log = NXlog(value=NXfield(wave(5000), units="K"),
                    time=NXfield(np.cumsum(rng().uniform(0, 1, 5000)), units="s"))
        NXroot(NXentry(data=NXdata(counts, axes), sample_log=log)).save(path, "w")

    def read(self, path):
        from nexusformat.nexus import nxload

        with nxload(path, "r") as root:
            data = root["entry/data"]
            return {"counts": data.nxsignal.nxdata, "energy": data.nxaxes[0].nxdata,
                    "q": data.nxaxes[1].nxdata, "units": np.array(data.nxaxes[0].units),
                    "temperature": root["entry/sample_log/value"].nxdata,
                    "time": root["entry/sample_log/time"].nxdata}


@community
class ScippNeXus(NeXus):
    """The layout of NeXus, read by another program of the community."""
    name = "NeXus"
    reader = "scippnexus"

    def read(self, path):
        import scippnexus

        with scippnexus.File(path, "r") as file:
            data = file["entry/data"][...]
            log = file["entry/sample_log"][...]
        return {"counts": data.values, "energy": data.coords["energy"].values,
                "q": data.coords["q"].values, "temperature": log.values,
                "time": log.coords["time"].values.astype("i8")}


def climate():
    import xarray as xr

    times = np.datetime64("2000-01-01", "ns") + np.arange(24) * np.timedelta64(6, "h")
    lat, lon = np.linspace(-90, 90, 60), np.linspace(0, 357, 80)
    return xr.Dataset(
        {"tas": (("time", "lat", "lon"), wave(24, 60, 80).astype("f4"), {"units": "K"}),
         "lat_bnds": (("lat", "nv"), np.stack([lat - 1, lat + 1], 1)),
         "station": (("lat",), np.array([f"place {i}" for i in range(60)]))},
        {"time": times, "lat": ("lat", lat, {"units": "degrees_north", "bounds": "lat_bnds"}),
         "lon": ("lon", lon, {"units": "degrees_east"})}, {"Conventions": "CF-1.8"})


class XarrayCommunity(Community):
    reader = "xarray"
    file = "in.nc"
    values = ("tas",)
    engine = ""

    def write(self, path):
        climate().to_netcdf(path, engine=self.engine, unlimited_dims=["time"])

    def read(self, path):
        import xarray as xr

        with xr.open_dataset(path, engine=self.engine) as data:
            found = {name: data[name].to_numpy() for name in data.variables}
        found["time"] = found["time"].astype("i8")
        found["station"] = found["station"].astype("U")
        return found


@community
class H5netcdf(XarrayCommunity):
    """xarray over h5netcdf."""
    name = "xarray, h5netcdf"
    writer = engine = "h5netcdf"


@community
class NetCDF4(XarrayCommunity):
    """xarray over netCDF4-python."""
    name = "xarray, netCDF4"
    writer, engine = "netCDF4", "netcdf4"


@community
class HDFEOS5(Community):
    """A swath in the layout of HDF-EOS5; read by netCDF-C, as NASA's users do."""
    name = "HDF-EOS5"
    reader = "netCDF4"
    file = "in.he5"
    values = ("*/Data Fields/Ozone",)

    def write(self, path):
        import h5py

        with h5py.File(path, "w") as file:
            information = file.create_group("HDFEOS INFORMATION")
            information.attrs["HDFEOSVersion"] = np.bytes_(b"HDFEOS_5.1.11")
            words = ("GROUP=SwathStructure\n\tGROUP=SWATH_1\n\t\tSwathName=\"O3\"\n"
                     "\tEND_GROUP=SWATH_1\n"
                     "END_GROUP=SwathStructure\nEND\n")
            information["StructMetadata.0"] = np.bytes_(words.encode().ljust(32000, b"\0"))
            swath = file.create_group("HDFEOS/SWATHS/O3")
            places = swath.create_group("Geolocation Fields")
            places["Latitude"] = np.linspace(-80, 80, 2000).astype("f4")
            places["Longitude"] = wave(2000).astype("f4") * 10
            places["Time"] = np.cumsum(wave(2000))
            places["Pressure"] = np.geomspace(1000, 0.1, 40).astype("f4")
            data = swath.create_group("Data Fields")
            ozone = data.create_dataset("Ozone", data=wave(2000, 40).astype("f4"), chunks=(500, 40),
                                        compression="gzip")
            ozone.attrs["_FillValue"] = np.float32(-999.99)
            data["Status"] = rng().integers(0, 3, 2000).astype("i2")

    def read(self, path):
        import netCDF4

        found = {}

        def walk(group, prefix):
            for name, variable in group.variables.items():
                if variable.dtype is not str:
                    found[f"{prefix}/{name}"] = np.ma.getdata(variable[...])
            for name, child in group.groups.items():
                walk(child, f"{prefix}/{name}")

        with netCDF4.Dataset(path) as file:
            walk(file, "")
        return found
