! A Fortran program that forgets to close its file; python/test_left_open.py runs it.
!
!   mpiexec -n N fortran_left_open FILE MODE
program fortran_left_open
  use, intrinsic :: iso_fortran_env
  use mpi_f08
  use tailrace
  implicit none
  type(tailrace_file) :: file
  type(tailrace_field) :: u
  character(512) :: path, mode
  real(real64) :: values(256, 512)
  integer :: rank, n_ranks, step

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  call get_command_argument(1, path)
  call get_command_argument(2, mode)
  call file%create(trim(path), comm=MPI_COMM_WORLD%mpi_val, mode=trim(mode), replace=.true.)
  call file%define('/u', tailrace_real64, [256, 512*n_ranks], u, over_time=.true.)
  do step = 0, 3
    call random_number(values)
    call file%put(u, values, start=[1, 1 + 512*rank])
    call file%end_step()
  end do
  call MPI_Finalize()
end program fortran_left_open
