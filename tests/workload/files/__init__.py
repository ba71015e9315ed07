"""Random HDF5 and netCDF files through every verb and reader, held to an inventory by h5py."""
