! Blocking calls of Fortran's three interfaces to MPI, on two ranks: rank 1 arrives late, and rank 0's
! wait must be marked (watch_waits.h). The interfaces: mpif.h and `use mpi`, and `use mpi_f08`.
module watch
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  integer :: n_failed = 0
  interface
    subroutine watch_begin() bind(c)
    end subroutine
    function watch_end() bind(c) result(seen)
      import :: c_int
      integer(c_int) :: seen
    end function
    subroutine arrive_late() bind(c)
    end subroutine
  end interface
contains
  subroutine begin(rank)
    integer, intent(in) :: rank
    if (rank == 0) call watch_begin()
    if (rank == 1) call arrive_late()
  end subroutine

  subroutine finish(rank, name, right)
    integer, intent(in) :: rank
    character(*), intent(in) :: name
    logical, intent(in) :: right
    integer :: seen
    seen = 1
    if (rank == 0) seen = watch_end()
    if (seen == 1 .and. right) return
    n_failed = n_failed + 1
    print '(3a,i0,a,l1)', 'failed: ', name, ', mark ', seen, ', values ', right
  end subroutine
end module

module old_interface
  use mpi
  use watch
  implicit none
contains
  subroutine run_old(rank)
    integer, intent(in) :: rank
    integer :: request, got, total, ierror, status(MPI_STATUS_SIZE)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call begin(rank)
    got = 11
    if (rank == 1) then
      call MPI_Send(11, 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, ierror)
    else
      got = 0
      call MPI_Irecv(got, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, request, ierror)
      call MPI_Wait(request, status, ierror)
    end if
    call finish(rank, 'mpi: MPI_Wait', got == 11 .and. ierror == MPI_SUCCESS)
    call begin(rank)
    if (rank == 1) then
      call MPI_Send(11, 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, ierror)
    else
      got = 0
      call MPI_Recv(got, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, status, ierror)
    end if
    call finish(rank, 'mpi: MPI_Recv', got == 11 .and. ierror == MPI_SUCCESS)
    call begin(rank)
    call MPI_Allreduce(10 + rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call finish(rank, 'mpi: MPI_Allreduce', total == 21 .and. ierror == MPI_SUCCESS)
    call begin(rank)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call finish(rank, 'mpi: MPI_Barrier', ierror == MPI_SUCCESS)
  end subroutine
end module

module new_interface
  use mpi_f08
  use watch
  implicit none
contains
  subroutine run_new(rank)
    integer, intent(in) :: rank
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: got, total
    call MPI_Barrier(MPI_COMM_WORLD)
    call begin(rank)
    got = 11
    if (rank == 1) then
      call MPI_Send(11, 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD)
    else
      got = 0
      call MPI_Irecv(got, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, request)
      call MPI_Wait(request, status)
      if (status%MPI_SOURCE /= 1) got = -1
    end if
    call finish(rank, 'mpi_f08: MPI_Wait', got == 11)
    call begin(rank)
    if (rank == 1) then
      call MPI_Send(11, 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD)
    else
      got = 0
      call MPI_Recv(got, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, status)
    end if
    call finish(rank, 'mpi_f08: MPI_Recv', got == 11)
    call begin(rank)
    call MPI_Allreduce(10 + rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call finish(rank, 'mpi_f08: MPI_Allreduce', total == 21)
    call begin(rank)
    call MPI_Barrier(MPI_COMM_WORLD)
    call finish(rank, 'mpi_f08: MPI_Barrier', .true.)
  end subroutine
end module

program waits_in_fortran
  use mpi_f08
  use watch
  use old_interface, only: run_old
  use new_interface, only: run_new
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call run_old(rank)
  call run_new(rank)
  if (rank == 0) print '(a,i0,a)', '8 calls, ', n_failed, ' failed'
  call MPI_Finalize()
  if (n_failed > 0) error stop 1
end program
