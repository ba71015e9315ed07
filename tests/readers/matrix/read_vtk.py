"""VTK's reader of netCDF: variables of the root group, all steps of time."""

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkIONetCDF import vtkNetCDFReader

import dataset_lines


def arrays_of(reader):
    """Arrays that the reader has loaded, by name."""
    data = reader.GetOutput()
    found = {}
    for part in (data.GetPointData(), data.GetCellData()):
        for i in range(part.GetNumberOfArrays()):
            found[part.GetArrayName(i)] = vtk_to_numpy(part.GetArray(i))
    return found


def steps_of(reader):
    keys = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    information = reader.GetOutputInformation(0)
    return information.Get(keys) if information.Has(keys) else [None]


def all_steps(reader, name):
    """Values of all time steps; the reader repeats values that do not depend on time at each
    step."""
    parts = []
    for step in steps_of(reader):
        reader.Update() if step is None else reader.UpdateTimeStep(step)
        loaded = arrays_of(reader)
        if name not in loaded:
            raise RuntimeError("not loaded")
        parts.append(loaded[name].copy())
    if all(np.array_equal(parts[0], each) for each in parts):
        return parts[0].ravel()
    return np.concatenate(parts).ravel()


def walk(path):
    reader = vtkNetCDFReader()
    reader.SetFileName(path)
    reader.UpdateMetaData()
    names = [reader.GetVariableArrayName(i) for i in range(reader.GetNumberOfVariableArrays())]
    dimensions = {name: reader.GetVariableDimensions().GetValue(i) for i, name in enumerate(names)}
    for name, text in dimensions.items():
        reader = vtkNetCDFReader()
        reader.SetFileName(path)
        reader.UpdateMetaData()
        reader.SetDimensions(text)
        reader.ReplaceFillValueWithNanOff()
        reader.UpdateInformation()
        # Arrays have one dimension here; the grid has the shape.
        yield name, lambda of=(reader, name): all_steps(*of), None


dataset_lines.read_files(vtkVersion().GetVTKVersion(), walk)
