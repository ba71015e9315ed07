! The run of restart.cpp in Fortran: killed at any moment, continued on any number of ranks.
!
!   mpiexec -n 4 restart_in_fortran run.h5 [sync|async|in_situ] [STEPS]
program restart
  use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
  use mpi_f08
  use tailrace
  implicit none

  integer, parameter :: n_rows = 96, n_columns = 160
  type(tailrace_file) :: file
  type(tailrace_field) :: field
  type(tailrace_reader) :: reader
  real(real64), allocatable :: u(:, :)
  integer :: rank, n_ranks, first, last, i, j, n_steps
  integer(int64) :: step
  logical :: exists
  character(256) :: path = 'run.h5', mode = 'sync', number = '40'

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  if (command_argument_count() > 0) call get_command_argument(1, path)
  if (command_argument_count() > 1) call get_command_argument(2, mode)
  if (command_argument_count() > 2) call get_command_argument(3, number)
  read (number, *) n_steps

  ! This rank's rows; Fortran's first dimension is the file's last one.
  first = n_rows*rank/n_ranks + 1
  last = n_rows*(rank + 1)/n_ranks
  allocate (u(n_columns, first:last))
  do j = first, last
    u(:, j) = [(real((j - 1)*n_columns + i, real64)/20000, i=1, n_columns)]
  end do

  step = 0
  call tailrace_recover(path, exists, comm=MPI_COMM_WORLD%mpi_val)  ! Alike on all ranks.
  if (exists) then
    call reader%open(path, comm=MPI_COMM_WORLD%mpi_val)
    step = reader%n_steps()
    if (step > 0) call reader%read_step('/u', step, u, start=[1, first])
    call reader%close()
  end if
  if (rank == 0) print '(a,i0,a,i0,a)', 'from step ', step, ' on ', n_ranks, ' ranks'
  flush (output_unit)

  if (exists) then
    call file%open(path, comm=MPI_COMM_WORLD%mpi_val, mode=mode)
  else
    call file%create(path, comm=MPI_COMM_WORLD%mpi_val, mode=mode)
  end if
  call file%define('/u', tailrace_real64, [n_columns, n_rows], field, over_time=.true., &
                   dims=['x', 'y'])
  do while (step < n_steps)
    u = 2.75_real64*u*(1 - u)  ! The simulation.
    call file%put(field, u, start=[1, first])
    call file%set_time(0.25_real64*step, units='s')
    call file%end_step()
    step = step + 1
  end do
  call file%close()
  call MPI_Finalize()
end program restart
