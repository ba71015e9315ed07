"""Particles: H5MD, GADGET, SWIFT, openPMD."""

import numpy as np

from community import Community, community, rng, wave, yt_values


@community
class H5MD(Community):
    name = "H5MD"
    writer = reader = "MDAnalysis"
    file = "in.h5md"
    values = ("velocities", "forces")

    def write(self, path):
        import MDAnalysis as mda

        atoms, frames = 800, 12
        universe = mda.Universe.empty(atoms, trajectory=True, velocities=True, forces=True)
        made = rng()
        with mda.Writer(path, n_atoms=atoms, n_frames=frames, format="H5MD", positions=True,
                        velocities=True, forces=True, dt=0.5, convert_units=False,
                        lengthunit="Angstrom", velocityunit="Angstrom/ps", timeunit="ps",
                        forceunit="kJ/(mol*Angstrom)") as writer:
            for i in range(frames):
                step = universe.trajectory.ts
                step.positions = made.uniform(0, 50, (atoms, 3)).astype("f4")
                step.velocities = made.normal(size=(atoms, 3)).astype("f4")
                step.forces = made.normal(size=(atoms, 3)).astype("f4")
                step.dimensions = [50, 50, 50, 90, 90, 90]
                step.data["step"], step.time = i * 10, i * 0.5
                writer.write(universe.atoms)

    def read(self, path):
        import MDAnalysis as mda

        universe = mda.Universe.empty(800)
        universe.load_new(path, format="H5MD", convert_units=False)
        steps = [(s.time, s.dimensions.copy(), s.positions.copy(), s.velocities.copy(),
                  s.forces.copy()) for s in universe.trajectory]
        names = ("time", "box", "positions", "velocities", "forces")
        return {name: np.stack(values) for name, values in zip(names, zip(*steps))}


@community
class GADGET(Community):
    name = "GADGET-2"
    reader = "yt"
    file = "snapshot_001.hdf5"
    values = ("Density", "Velocities", "InternalEnergy")
    positive = ("Density", "InternalEnergy")
    n = 6000

    def write(self, path):
        import h5py

        made, n = rng(), self.n
        with h5py.File(path, "w") as file:
            header = file.create_group("Header").attrs
            for name, value in {
                    "NumPart_ThisFile": np.array([n, n, 0, 0, 0, 0], "i4"),
                    "NumPart_Total": np.array([n, n, 0, 0, 0, 0], "u4"),
                    "NumPart_Total_HighWord": np.zeros(6, "u4"), "MassTable": np.zeros(6),
                    "BoxSize": 100.0, "Time": 0.5, "Redshift": 1.0, "NumFilesPerSnapshot": 1,
                    "Omega0": 0.3, "OmegaLambda": 0.7, "HubbleParam": 0.7, "Flag_Sfr": 0,
                    "Flag_Cooling": 0, "Flag_StellarAge": 0, "Flag_Metals": 0, "Flag_Feedback": 0,
                    "Flag_DoublePrecision": 1}.items():
                header[name] = value
            for kind in (0, 1):
                group = file.create_group(f"PartType{kind}")
                places = made.uniform(0, 100, (n, 3))
                places[0] = (np.nextafter(100, 0), 0, 0)
                group["Coordinates"] = places
                group["Velocities"] = made.normal(0, 100, (n, 3)).astype("f4")
                group["ParticleIDs"] = made.permutation(n).astype("u8") + kind * n
                group["Masses"] = np.full(n, 1e-3, "f4")
            gas = file["PartType0"]
            gas["InternalEnergy"] = made.lognormal(0, 1, n).astype("f4")
            gas["Density"] = made.lognormal(0, 2, n).astype("f4")
            gas["SmoothingLength"] = made.uniform(0.1, 1, n).astype("f4")

    def read(self, path):
        found = yt_values(path, [("PartType0", name) for name in (
            "Coordinates", "Velocities", "ParticleIDs", "InternalEnergy", "Density")])
        assert found["Coordinates"].max() < 100
        order = np.argsort(found["ParticleIDs"])
        return {name: values[order] if len(np.atleast_1d(values)) == self.n else values
                for name, values in found.items()}


@community
class SWIFT(Community):
    name = "SWIFT"
    writer = reader = "swiftsimio"
    file = "in.hdf5"
    values = ("internal_energies", "velocities")

    def write(self, path):
        import swiftsimio
        import unyt

        n, made = 8000, rng()

        def of(values, unit, exponent):
            return swiftsimio.cosmo_array(values, unit, comoving=True, scale_factor=0.5,
                                          scale_exponent=exponent)

        speed = unyt.km / unyt.s
        writer = swiftsimio.Writer(boxsize=of([100.0] * 3, unyt.Mpc, 1), scale_factor=0.5)
        writer.gas.coordinates = of(made.uniform(0, 100, (n, 3)), unyt.Mpc, 1)
        writer.gas.velocities = of(made.normal(size=(n, 3)), speed, 0)
        writer.gas.masses = of(np.ones(n), unyt.unyt_quantity(1e10, "Msun").units, 0)
        writer.gas.internal_energy = of(made.lognormal(0, 1, n), speed ** 2, -2)
        writer.gas.smoothing_lengths = of(made.uniform(0.1, 1, n), unyt.Mpc, 1)
        writer.write(path)

    def read(self, path):
        import swiftsimio

        data = swiftsimio.load(path)
        gas = data.gas
        return {"coordinates": np.asarray(gas.coordinates), "ids": np.asarray(gas.particle_ids),
                "velocities": np.asarray(gas.velocities),
                "internal_energies": np.asarray(gas.internal_energies)}


@community
class OpenPMD(Community):
    name = "openPMD"
    writer = reader = "openPMD-api"
    values = ("E/x", "momentum/x")

    def write(self, path):
        import openpmd_api as io

        series = io.Series(path, io.Access.create)
        step = series.iterations[100]
        step.time = 1.5
        n, made = 5000, rng()
        field = step.meshes["E"]
        field.grid_spacing, field.grid_global_offset, field.axis_labels = [1, 1], [0, 0], ["y", "x"]
        kept = []

        def store(component, values):
            component.reset_dataset(io.Dataset(values.dtype, values.shape))
            kept.append(values)
            component.store_chunk(values)

        store(field["x"], wave(120, 100))
        electrons = step.particles["electrons"]
        for name in ("position", "momentum"):
            store(electrons[name]["x"], made.uniform(0, 9, n))
        offset = electrons["positionOffset"]["x"]
        offset.reset_dataset(io.Dataset(np.dtype("f8"), [n]))
        offset.make_constant(0.0)
        store(electrons["id"][io.Record_Component.SCALAR], made.permutation(n).astype("u8"))
        store(electrons["weighting"][io.Record_Component.SCALAR], made.uniform(1, 2, n))
        series.flush()
        series.close()

    def read(self, path):
        import openpmd_api as io

        series = io.Series(path, io.Access.read_only)
        step = series.iterations[100]
        electrons = step.particles["electrons"]
        scalar = io.Record_Component.SCALAR
        found = {"E/x": step.meshes["E"]["x"].load_chunk(),
                 "position/x": electrons["position"]["x"].load_chunk(),
                 "momentum/x": electrons["momentum"]["x"].load_chunk(),
                 "id": electrons["id"][scalar].load_chunk(),
                 "weighting": electrons["weighting"][scalar].load_chunk()}
        series.flush()
        found["time"] = np.array(step.time)
        found = {name: values.copy() for name, values in found.items()}
        series.close()
        return found
