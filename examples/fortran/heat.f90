! The heat equation on a square, by finite differences, with its temperature written as it goes.
!
! Ranks share the columns; each keeps its own and a copy of one of each neighbour's. Every 50th step
! goes into one dataset that grows over time, compressed within 0.001 K; at the end all ranks read
! their part of the last entry back and check it.
!
!   mpiexec -n 4 heat [FILE]
program heat
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use tailrace
  implicit none

  integer, parameter :: n = 256, n_steps = 500, every = 50
  real(real64), parameter :: bound = 1.0e-3_real64, hot = 400, cold = 300
  type(tailrace_file) :: file
  type(tailrace_field) :: temperature
  type(tailrace_report) :: report
  type(tailrace_reader) :: reader
  real(real64), allocatable :: now(:, :), next(:, :), back(:, :, :)
  integer(int64), allocatable :: extents(:)
  real(real64) :: largest, largest_of_all
  integer :: rank, n_ranks, first, last, left, right, step, n_written
  character(256) :: path

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  path = 'heat.h5'
  if (command_argument_count() > 0) call get_command_argument(1, path)

  ! This rank's columns, and its neighbours.
  first = n*rank/n_ranks + 1
  last = n*(rank + 1)/n_ranks
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < n_ranks - 1)
  allocate (now(n, first - 1:last + 1), source=cold)
  if (rank == 0) now(n/4:n/2, first:min(last, n/8)) = hot
  next = now

  call file%create(path, comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
  call file%define('/temperature', tailrace_real64, [n, n], temperature, codec='portable', &
                   bound='abs=1e-3', over_time=.true., dims=['x', 'y'])
  call file%set_attribute('/temperature', 'units', 'K')
  call file%set_attribute('/', 'steps_between_entries', every)

  n_written = 0
  do step = 1, n_steps
    call exchange(now)
    call advance(now, next)
    call move_into(next, now)
    if (mod(step, every) /= 0) cycle
    call file%put(temperature, now(:, first:last), start=[1, first])
    call file%set_time(real(step, real64))
    call file%end_step(report)
    n_written = n_written + 1
    if (rank == 0) print '(a,i4,a,f7.1,a,f7.2,a)', 'step ', step, ': ratio ', report%ratio, ', ', &
      1000*report%step_s, ' ms'
  end do
  call file%close()

  ! Time is the last dimension.
  call reader%open(path, comm=MPI_COMM_WORLD%mpi_val)
  call reader%inquire('/temperature', extents)
  allocate (back(n, last - first + 1, 1))
  call reader%read_all('/temperature', back, start=[1, first, n_written])
  call reader%close()
  largest = 0
  if (last >= first) largest = maxval(abs(back(:, :, 1) - now(:, first:last)))
  call MPI_Allreduce(largest, largest_of_all, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (rank == 0) print '(a,3(1x,i0),a,es9.2,a)', 'extents', extents, ', largest error', &
    largest_of_all, ' K'
  call MPI_Finalize()
  if (any(extents /= [n, n, n_written]) .or. largest_of_all > bound) error stop 'heat: wrong values'

contains

  !> Exchange the columns next to those of the neighbours; edge columns do not change.
  subroutine exchange(t)
    real(real64), intent(inout) :: t(n, first - 1:*)
    call MPI_Sendrecv(t(:, last), n, MPI_DOUBLE_PRECISION, right, 0, &
                      t(:, first - 1), n, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(t(:, first), n, MPI_DOUBLE_PRECISION, left, 1, &
                      t(:, last + 1), n, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine exchange

  pure subroutine advance(old, new)
    real(real64), intent(in) :: old(n, first - 1:*)
    real(real64), intent(inout) :: new(n, first - 1:*)
    integer :: j
    do j = max(first, 2), min(last, n - 1)
      new(2:n - 1, j) = old(2:n - 1, j) + 0.2_real64*(old(1:n - 2, j) + old(3:n, j) + &
                        old(2:n - 1, j - 1) + old(2:n - 1, j + 1) - 4*old(2:n - 1, j))
    end do
  end subroutine advance

  pure subroutine move_into(from, to)
    real(real64), intent(in) :: from(n, first - 1:*)
    real(real64), intent(inout) :: to(n, first - 1:*)
    to(:, first:last) = from(:, first:last)
  end subroutine move_into

end program heat
