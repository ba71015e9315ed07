"""Random HDF5 and netCDF files through every verb and reader, compared by an inventory from
h5py."""
