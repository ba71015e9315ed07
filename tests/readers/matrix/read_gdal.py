"""GDAL's multidimensional arrays, through the HDF5 or the netCDF driver, whichever accepts the
file."""

from osgeo import gdal

import dataset_lines

gdal.UseExceptions()


def attributes_of(item):
    found = {each.GetName(): each.Read() for each in item.GetAttributes() or []
             if dataset_lines.ATTRIBUTES.match(each.GetName())}
    # Units are a property of arrays, not an attribute.
    if hasattr(item, "GetUnit") and item.GetUnit():
        found["units"] = item.GetUnit()
    return found


def walk(path):
    data = gdal.OpenEx(path, gdal.OF_MULTIDIM_RASTER)
    root = data.GetRootGroup()
    yield "/", None, lambda: attributes_of(root)
    yield from inside(root, "", path.endswith(".nc"))


def values_of(array, is_netcdf):
    gdal.ErrorReset()
    try:
        if array.GetDataType().GetClass() == gdal.GEDTC_STRING:
            return array.Read()
        values = array.ReadAsArray()
        # netCDF's characters are bytes here, and the matrix has no other bytes in netCDF.
        return values.view("S1") if is_netcdf and values.dtype == "u1" else values
    except RuntimeError as error:
        raise RuntimeError(str(error) or gdal.GetLastErrorMsg() or "no values") from error


def inside(group, prefix, is_netcdf):
    for name in group.GetMDArrayNames(["SHOW_ALL=YES"]) or []:
        array = group.OpenMDArray(name)
        yield (prefix + name, lambda array=array: values_of(array, is_netcdf),
               lambda array=array: attributes_of(array))
    for name in group.GetGroupNames() or []:
        yield from inside(group.OpenGroup(name), f"{prefix}{name}/", is_netcdf)


dataset_lines.read_files(gdal.__version__, walk)
