"""Meshes: VTKHDF, CGNS, Athena++, FLASH, Enzo."""

import pathlib

import numpy as np

from community import Community, community, rng, wave, yt_values


def hexahedra(n):
    """Points and cells of a grid of n^3 points."""
    axis = np.linspace(0, 1, n) ** 1.1
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    i = np.arange(n ** 3).reshape(n, n, n)
    corners = [i[:-1, :-1, :-1], i[1:, :-1, :-1], i[1:, 1:, :-1], i[:-1, 1:, :-1],
               i[:-1, :-1, 1:], i[1:, :-1, 1:], i[1:, 1:, 1:], i[:-1, 1:, 1:]]
    return points, np.stack(corners, -1).reshape(-1, 8)


def vtk_grid(points, cells):
    from vtkmodules.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import VTK_HEXAHEDRON, vtkCellArray, vtkUnstructuredGrid

    grid, place, array = vtkUnstructuredGrid(), vtkPoints(), vtkCellArray()
    place.SetData(numpy_to_vtk(np.ascontiguousarray(points), deep=True))
    grid.SetPoints(place)
    array.SetData(numpy_to_vtkIdTypeArray(np.arange(len(cells) + 1) * 8, deep=True),
                  numpy_to_vtkIdTypeArray(np.ascontiguousarray(cells).ravel(), deep=True))
    grid.SetCells(VTK_HEXAHEDRON, array)
    return grid


def first_grid(data):
    """The first data set with points in a tree."""
    if hasattr(data, "GetPointData") and data.GetNumberOfPoints():
        return data
    if hasattr(data, "GetPartition"):
        children = [data.GetPartition(i) for i in range(data.GetNumberOfPartitions())]
    elif hasattr(data, "GetBlock"):
        children = [data.GetBlock(i) for i in range(data.GetNumberOfBlocks())]
    else:
        children = []
    for child in filter(None, children):
        found = first_grid(child)
        if found is not None:
            return found
    return None


def arrays_of(grid):
    from vtkmodules.util.numpy_support import vtk_to_numpy

    found = {"points": vtk_to_numpy(grid.GetPoints().GetData())}
    if hasattr(grid, "GetCells"):
        found["cells"] = vtk_to_numpy(grid.GetCells().GetConnectivityArray())
    for kind, data in (("point", grid.GetPointData()), ("cell", grid.GetCellData())):
        for i in range(data.GetNumberOfArrays()):
            found[f"{kind}/{data.GetArrayName(i)}"] = vtk_to_numpy(data.GetArray(i))
    return {name: values.copy() for name, values in found.items()}


@community
class VTKHDF(Community):
    name = "VTKHDF"
    writer = reader = "vtk"
    file = "in.vtkhdf"
    values = ("point/u", "point/velocity", "cell/p")

    def write(self, path):
        from vtkmodules.util.numpy_support import numpy_to_vtk
        from vtkmodules.vtkIOHDF import vtkHDFWriter

        points, cells = hexahedra(20)
        grid = vtk_grid(points, cells)
        for data, name, values in ((grid.GetPointData(), "u", wave(len(points)).astype("f4")),
                                   (grid.GetPointData(), "velocity", wave(len(points), 3)),
                                   (grid.GetPointData(), "GlobalNodeId", np.arange(len(points))),
                                   (grid.GetCellData(), "p", wave(len(cells)))):
            array = numpy_to_vtk(np.ascontiguousarray(values), deep=True)
            array.SetName(name)
            data.AddArray(array)
        writer = vtkHDFWriter()
        writer.SetInputData(grid)
        writer.SetFileName(path)
        writer.SetCompressionLevel(0)
        assert writer.Write()

    def read(self, path):
        from vtkmodules.vtkIOHDF import vtkHDFReader

        reader = vtkHDFReader()
        reader.SetFileName(path)
        reader.Update()
        return arrays_of(first_grid(reader.GetOutputDataObject(0)))


@community
class CGNS(Community):
    """A zone of hexahedra in the SIDS' mapping to HDF5; read by VTK's reader on libcgns."""
    name = "CGNS"
    reader = "vtk"
    file = "in.cgns"
    values = ("point/Pressure", "point/Density")

    def write(self, path):
        import h5py

        def node(parent, name, label, data=None):
            group = parent.create_group(name, track_order=True)
            kind = "MT" if data is None else {"f8": "R8", "f4": "R4", "i4": "I4", "i8": "I8",
                                              "i1": "C1"}[data.dtype.str[1:]]
            for key, text, size in (("name", name, 33), ("label", label, 33), ("type", kind, 3)):
                group.attrs.create(key, np.bytes_(text.encode()), dtype=f"S{size}")
            group.attrs["flags"] = np.array([1], "i4")
            if data is not None:
                group[" data"] = data
            return group

        def text(words):
            return np.frombuffer(words.encode(), "i1")

        points, cells = hexahedra(20)
        with h5py.File(path, "w", track_order=True) as file:
            for key, value in (("name", "HDF5 MotherNode"), ("label", "Root Node of HDF5 File")):
                file.attrs.create(key, np.bytes_(value.encode()), dtype="S33")
            file.attrs.create("type", np.bytes_(b"MT"), dtype="S3")
            file[" format"] = text("IEEE_LITTLE_32\0")
            file[" hdf5version"] = text("HDF5 Version 1.10.7".ljust(33, "\0"))
            node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([3.3], "f4"))
            base = node(file, "Base", "CGNSBase_t", np.array([3, 3], "i4"))
            zone = node(base, "Zone", "Zone_t", np.array([[len(points)], [len(cells)], [0]], "i4"))
            node(zone, "ZoneType", "ZoneType_t", text("Unstructured"))
            grid = node(zone, "GridCoordinates", "GridCoordinates_t")
            for d, axis in enumerate("XYZ"):
                node(grid, f"Coordinate{axis}", "DataArray_t", points[:, d].copy())
            section = node(zone, "Hexa", "Elements_t", np.array([17, 0], "i4"))
            node(section, "ElementRange", "IndexRange_t", np.array([1, len(cells)], "i4"))
            node(section, "ElementConnectivity", "DataArray_t", (cells + 1).ravel().astype("i4"))
            flow = node(zone, "FlowSolution", "FlowSolution_t")
            node(flow, "GridLocation", "GridLocation_t", text("Vertex"))
            node(flow, "Pressure", "DataArray_t", wave(len(points)))
            node(flow, "Density", "DataArray_t", 1 + wave(len(points)) / 100)

    def read(self, path):
        from vtkmodules.vtkIOCGNSReader import vtkCGNSReader

        reader = vtkCGNSReader()
        reader.SetFileName(path)
        reader.UpdateInformation()
        reader.EnableAllBases()
        reader.EnableAllPointArrays()
        reader.Update()
        return arrays_of(first_grid(reader.GetOutput()))


@community
class Athena(Community):
    """Athena++ HDF5 output, version 1.0: four meshblocks, numbered on two levels."""
    name = "Athena++"
    reader = "yt"
    file = "in.out1.00001.athdf"
    values = ("rho", "press", "vel?")
    one_dataset = True

    def write(self, path):
        import h5py

        n, blocks = 24, 4
        with h5py.File(path, "w") as file:
            attributes = {
                "NumCycles": np.int32(7), "Time": 0.25, "Coordinates": np.bytes_(b"cartesian"),
                "RootGridX1": np.array([0, 4, 1.0]), "RootGridX2": np.array([0, 1, 1.0]),
                "RootGridX3": np.array([0, 1, 1.0]),
                "RootGridSize": np.array([n * blocks, n, n], "i4"),
                "NumMeshBlocks": np.int32(blocks), "MeshBlockSize": np.array([n, n, n], "i4"),
                "MaxLevel": np.int32(0), "NumVariables": np.array([5], "i4"),
                "DatasetNames": np.array([b"prim"], "S21"),
                "VariableNames": np.array([b"rho", b"press", b"vel1", b"vel2", b"vel3"], "S21")}
            for name, value in attributes.items():
                file.attrs[name] = value
            file["prim"] = wave(5, blocks, n, n, n).astype("f4")
            file["Levels"] = np.zeros(blocks, "i4")
            file["LogicalLocations"] = np.array([[i, 0, 0] for i in range(blocks)], "i8")
            for axis in (1, 2, 3):
                faces = np.stack([np.linspace(0, 1, n + 1) + (i if axis == 1 else 0)
                                  for i in range(blocks)]).astype("f4")
                file[f"x{axis}f"] = faces
                file[f"x{axis}v"] = (faces[:, 1:] + faces[:, :-1]) / 2

    def read(self, path):
        import h5py

        found = yt_values(path, [("athena_pp", "rho"), ("athena_pp", "press"),
                                 ("athena_pp", "vel1"), ("athena_pp", "vel2"),
                                 ("athena_pp", "vel3"), ("index", "x"), ("index", "dx")])
        with h5py.File(path) as file:
            found |= {name: file[name][...] for name in ("x1f", "x1v", "Levels",
                                                         "LogicalLocations")}
        return found


@community
class FLASH(Community):
    """FLASH 4 checkpoint of file format 9: four blocks in a row."""
    name = "FLASH"
    reader = "yt"
    file = "in_hdf5_chk_0001"
    values = ("dens", "temp", "velx")

    def write(self, path):
        import h5py

        n, blocks = 16, 8
        names = ["dens", "temp", "velx"]

        def pairs(entries, dtype):
            return np.array([(name.ljust(80).encode(), value) for name, value in entries],
                            [("name", "S80"), ("value", dtype)])

        with h5py.File(path, "w") as file:
            integers = {"nxb": n, "nyb": n, "nzb": n, "dimensionality": 3,
                        "globalnumblocks": blocks,
                        "iprocs": 1, "jprocs": 1, "kprocs": 1, "nblockx": blocks, "nblocky": 1,
                        "nblockz": 1, "lrefine_min": 1, "lrefine_max": 1, "nstep": 5, "nbegin": 1}
            reals = {"xmin": 0.0, "xmax": float(blocks), "ymin": 0.0, "ymax": 1.0, "zmin": 0.0,
                     "zmax": 1.0, "time": 0.25, "dt": 0.01}
            file["sim info"] = np.array([(9,)], [("file format version", "i4")])
            for kind, entries, dtype in (("integer", integers, "i4"), ("real", reals, "f8")):
                file[f"{kind} scalars"] = pairs(entries.items(), dtype)
                file[f"{kind} runtime parameters"] = pairs(entries.items(), dtype)
            texts = {"geometry": "cartesian"}
            for group in ("scalars", "runtime parameters"):
                file[f"string {group}"] = np.array(
                    [(k.ljust(80).encode(), v.ljust(80).encode()) for k, v in texts.items()],
                    [("name", "S80"), ("value", "S80")])
                file[f"logical {group}"] = pairs([("corners", 0)], "i4")
            file["unknown names"] = np.array([[name.encode()] for name in names], "S4")
            for i, name in enumerate(names):
                data = file.create_dataset(name, data=wave(blocks, n, n, n) * (i + 1))
                data.attrs["minimum"], data.attrs["maximum"] = data[...].min(), data[...].max()
            left = np.arange(blocks)[:, None] * [1.0, 0, 0]
            file["bounding box"] = np.stack([left, left + 1], -1)
            file["block size"] = np.ones((blocks, 3))
            file["coordinates"] = left + 0.5
            gid = np.full((blocks, 15), -1, "i4")
            gid[1:, 0], gid[:-1, 1] = np.arange(1, blocks), np.arange(2, blocks + 1)
            file["gid"] = gid
            file["refine level"] = np.ones(blocks, "i4")
            file["node type"] = np.ones(blocks, "i4")
            file["processor number"] = np.zeros(blocks, "i4")
            file["which child"] = np.full(blocks, -1, "i4")

    def read(self, path):
        return yt_values(path, [("flash", "dens"), ("flash", "temp"), ("flash", "velx"),
                                ("index", "x"), ("index", "dx")])


@community
class Enzo(Community):
    """An Enzo data dump of one grid, with particles."""
    name = "Enzo"
    reader = "yt"
    file = "DD0001.cpu0000"
    values = ("Density", "x-velocity", "particle_velocity_x")

    def write(self, path):
        import h5py

        n, particles = 24, 4000
        made = rng()
        stem = path[: -len(".cpu0000")]
        with h5py.File(path, "w") as file:
            grid = file.create_group("Grid00000001")
            grid["Density"] = wave(n, n, n)
            grid["x-velocity"] = wave(n, n, n) - 10
            grid["particle_index"] = made.permutation(particles)
            grid["particle_mass"] = np.full(particles, 0.25)
            for axis in "xyz":
                grid[f"particle_position_{axis}"] = made.uniform(0, 1, particles)
                grid[f"particle_velocity_{axis}"] = made.normal(size=particles)
            file.create_group("Metadata")
        pathlib.Path(stem).write_text("\n".join([
            "InitialCycleNumber = 1", "InitialTime = 0.5", "TopGridRank = 3",
            f"TopGridDimensions = {n} {n} {n}", "DomainLeftEdge = 0 0 0", "DomainRightEdge = 1 1 1",
            "RefineBy = 2", "MaximumRefinementLevel = 0", "HydroMethod = 0", "DataDumpNumber = 1",
            "ComovingCoordinates = 0", "DensityUnits = 1", "LengthUnits = 1", "TimeUnits = 1",
            "VersionNumber = 2.0", "MultiSpecies = 0", "LeftFaceBoundaryCondition = 3 3 3",
            "RightFaceBoundaryCondition = 3 3 3", "CurrentTimeIdentifier = 1",
            "MetaDataDatasetUUID = 1", "DualEnergyFormalism = 0", "Gamma = 1.6667",
            f"NumberOfParticles = {particles}"]) + "\n")
        pathlib.Path(stem + ".hierarchy").write_text("\n".join([
            "", "Grid = 1", "Task = 0", "GridRank = 3", f"GridDimension = {n + 6} {n + 6} {n + 6}",
            "GridStartIndex = 3 3 3", f"GridEndIndex = {n + 2} {n + 2} {n + 2}",
            "GridLeftEdge = 0 0 0", "GridRightEdge = 1 1 1", "Time = 0.5", "SubgridsAreStatic = 0",
            "NumberOfBaryonFields = 2", "FieldType = 0 4", f"BaryonFileName = {path}",
            "CourantSafetyNumber = 0.4", "PPMFlatteningParameter = 0", "PPMDiffusionParameter = 0",
            "PPMSteepeningParameter = 0", f"NumberOfParticles = {particles}",
            f"ParticleFileName = {path}", "GravityBoundaryType = 0",
            "Pointer: Grid[1]->NextGridThisLevel = 0", "Pointer: Grid[1]->NextGridNextLevel = 0"])
            + "\n")

    def read(self, path):
        import yt

        # The hierarchy file names the file of its grids.
        stem = path[: -len(".cpu0000")]
        first = pathlib.Path(path).parent.parent / "in" / "DD0001"
        if not pathlib.Path(stem).exists():
            for ending in ("", ".hierarchy"):
                text = pathlib.Path(str(first) + ending).read_text()
                pathlib.Path(stem + ending).write_text(text.replace(str(first), stem))
        return yt_values(stem, [("enzo", "Density"), ("enzo", "x-velocity"), ("index", "x"),
                                ("io", "particle_index"), ("io", "particle_position_x"),
                                ("io", "particle_velocity_x")])
