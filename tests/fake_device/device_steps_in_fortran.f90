! Device puts in Fortran: the fake device of fake_device.h, on any number of ranks. Checks itself;
! tests/python/test_device.py reads its file.
!
!   device_steps_in_fortran FOLDER sync|in_situ
module fake_device
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function device_make(n_bytes) bind(C, name="fortran_device_make")
      import
      integer(c_size_t), value :: n_bytes
      type(c_ptr) :: device_make
    end function device_make
    subroutine device_fill(offset, values, n_bytes) bind(C, name="fortran_device_fill")
      import
      integer(c_size_t), value :: offset, n_bytes
      type(*), dimension(*), intent(in) :: values
    end subroutine device_fill
    subroutine device_fail_next() bind(C, name="fortran_device_fail_next")
    end subroutine device_fail_next
    function device_copy(user, to, from, n_bytes) bind(C, name="fortran_device_copy")
      import
      type(c_ptr), value :: user, to, from
      integer(c_size_t), value :: n_bytes
      integer(c_int) :: device_copy
    end function device_copy
  end interface
contains
  !> The function for Tailrace.
  function copy(user, to, from, n_bytes) bind(C) result(error)
    type(c_ptr), value :: user, to, from
    integer(c_size_t), value :: n_bytes
    integer(c_int) :: error
    error = device_copy(user, to, from, n_bytes)
  end function copy
end module fake_device

program device_steps_in_fortran
  use mpi_f08
  use tailrace
  use fake_device
  implicit none
  integer, parameter :: nx = 6, ny = 5
  integer(c_int), target :: seven = 7
  character(512) :: folder, mode, text
  integer :: rank, n_ranks, n_wrong = 0
  type(c_ptr) :: memory

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  call get_command_argument(1, folder)
  call get_command_argument(2, mode)
  memory = device_make(4096_c_size_t)
  call steps()
  call errors()
  call MPI_Allreduce(MPI_IN_PLACE, n_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (n_wrong > 0) error stop 1

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    n_wrong = n_wrong + 1
    print '(a,i0,4a)', 'rank ', rank, ' FAILED: ', what, ': ', trim(text)
  end subroutine expect

  !> Address of an element of the device's memory, of 4 bytes each.
  function address_of(i) result(address)
    integer, intent(in) :: i
    type(c_ptr) :: address
    address = transfer(transfer(memory, 0_c_intptr_t) + 4_c_intptr_t*(i - 1), c_null_ptr)
  end function address_of

  subroutine steps()
    type(tailrace_file) :: file
    type(tailrace_field) :: u, scalar
    real(c_float) :: values(nx, ny)
    integer :: step, i, j
    call file%create(trim(folder)//'/good.h5', comm=MPI_COMM_WORLD%mpi_val, mode=trim(mode), &
                     replace=.true.)
    call file%define('/u', tailrace_real32, [nx, ny*n_ranks], u, over_time=.true.)
    call file%define('/scalar', tailrace_real32, [integer ::], scalar, over_time=.true.)
    call file%copy_from_device(c_funloc(copy), c_loc(seven))
    do step = 0, 2
      do concurrent (i = 1:nx, j = 1:ny)
        values(i, j) = 1000*step + i + 10*(j - 1 + ny*rank)
      end do
      call device_fill(0_c_size_t, values, 4_c_size_t*nx*ny)
      call device_fill(4_c_size_t*nx*ny, [1000.0*step], 4_c_size_t)
      ! The last column has a put of its own, with positions of another kind of integer.
      call file%put_device(u, address_of(1), start=[1, ny*rank + 1], count=[nx, ny - 1])
      call file%put_device(u, address_of(nx*(ny - 1) + 1), &
                           start=int([1, ny*(rank + 1)], c_int64_t), count=[nx, 1])
      if (rank == 0) call file%put_device(scalar, address_of(nx*ny + 1))
      call file%end_step()
    end do
    call file%close()
  end subroutine steps

  !> Begin a file of one field, in which a step fails.
  subroutine begin(file, u)
    type(tailrace_file), intent(inout) :: file
    type(tailrace_field), intent(out) :: u
    integer :: stat
    if (file%is_open()) call file%close(stat=stat)
    text = ''
    call file%create(trim(folder)//'/errors.h5', comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    call file%define('/u', tailrace_real32, [nx, ny*n_ranks], u)
    call file%copy_from_device(c_funloc(copy), c_loc(seven))
  end subroutine begin

  subroutine errors()
    type(tailrace_file) :: file
    type(tailrace_field) :: u
    integer :: stat
    call begin(file, u)
    call file%copy_from_device(c_null_funptr)
    call file%put_device(u, address_of(1), start=[1, ny*rank + 1], count=[nx, ny], stat=stat, &
                         errmsg=text)
    call expect(stat /= 0 .and. index(text, 'without a function') > 0, 'no function')
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat /= 0 .and. index(text, 'without a function') > 0, 'the step without one')
    call begin(file, u)
    call file%put_device(u, address_of(1), stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. index(text, 'needs count=') > 0, 'no count')
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat /= 0 .and. index(text, 'needs count=') > 0, 'the step without a count')
    call begin(file, u)
    call file%put_device(u, address_of(1), start=[1, ny*rank + 1, 1], count=[nx, ny], stat=stat, &
                         errmsg=text)
    call expect(index(text, 'start has 3 numbers, must have 2') > 0, 'too many numbers')
    call begin(file, u)
    if (rank == n_ranks - 1) call device_fail_next()
    call file%put_device(u, address_of(1), start=[1, ny*rank + 1], count=[nx, ny])
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat /= 0 .and. index(text, 'failed with 700') > 0, 'a copy that fails')
    call file%close(stat=stat)
  end subroutine errors

end program device_steps_in_fortran
