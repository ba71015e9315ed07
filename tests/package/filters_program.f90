! Fortran program with its own HDF5: reads a dataset of filter trz through libtailrace_filters.so.
program filters_program
  use, intrinsic :: iso_c_binding, only: c_int
  use hdf5
  implicit none
  interface
    function tailrace_register_filters() bind(c)
      import :: c_int
      integer(c_int) :: tailrace_register_filters
    end function
  end interface
  character(len=512) :: path
  integer(hid_t) :: file, dataset
  integer :: error, i
  double precision :: values(20000)

  call get_command_argument(1, path)
  call h5open_f(error)
  if (tailrace_register_filters() /= 0) error stop "not registered"
  call h5fopen_f(trim(path), H5F_ACC_RDONLY_F, file, error)
  call h5dopen_f(file, "trz", dataset, error)
  call h5dread_f(dataset, H5T_NATIVE_DOUBLE, values, [integer(hsize_t) :: 20000], error)
  if (error /= 0) error stop "not read"
  if (maxval(abs(values - [(100 * sin(i * 1d-3), i = 0, 19999)])) > 0.5d0) error stop "not within"
  call h5dclose_f(dataset, error)
  call h5fclose_f(file, error)
  call h5close_f(error)
  print "(a)", "read"
end program
