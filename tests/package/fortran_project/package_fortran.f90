! Write a field with the installed module, without MPI, and read it.
program package_fortran
  use tailrace
  implicit none
  type(tailrace_file) :: file
  type(tailrace_field) :: field
  type(tailrace_reader) :: reader
  double precision :: ramp(100), back(100)
  character(1000) :: path
  integer :: i
  call get_command_argument(1, path)
  ramp = [(dble(i), i=1, 100)]
  call file%create(path, codec='deflate')
  call file%define('/ramp', tailrace_real64, [100], field)
  call file%put(field, ramp)
  call file%close()
  call reader%open(path)
  call reader%read('/ramp', back)
  call reader%close()
  if (any(back /= ramp)) error stop 'wrong values'
end program package_fortran
