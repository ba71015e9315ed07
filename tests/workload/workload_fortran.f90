!> The workload's calls of the Fortran module, for workload_writer.cpp: one file at a time, fields
!! by number. Extents and positions have C's order, and begin at 0. Each function returns the
!! module's stat, and the text of an error.
module workload_fortran
  use, intrinsic :: iso_c_binding
  use tailrace
  implicit none
  private

  integer, parameter :: text_bytes = 512
  type(tailrace_file) :: file
  type(tailrace_field), allocatable :: fields(:)

contains

  function in_fortran(text) result(string)
    character(kind=c_char), intent(in) :: text(*)
    character(:), allocatable :: string
    integer :: n, i
    n = 0
    do while (text(n + 1) /= c_null_char)
      n = n + 1
    end do
    allocate (character(n) :: string)
    do i = 1, n
      string(i:i) = text(i)
    end do
  end function in_fortran

  subroutine in_c(string, text)
    character(*), intent(in) :: string
    character(kind=c_char), intent(out) :: text(text_bytes)
    integer :: i
    do i = 1, min(len_trim(string), text_bytes - 1)
      text(i) = string(i:i)
    end do
    text(min(len_trim(string), text_bytes - 1) + 1) = c_null_char
  end subroutine in_c

  integer(c_int) function fortran_open(path, opens, comm, options, text) bind(C)
    character(kind=c_char), intent(in) :: path(*), options(*)
    integer(c_int), value :: opens, comm
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    integer :: stat
    message = ''
    fields = [tailrace_field ::]
    if (opens /= 0) then
      call file%open(in_fortran(path), comm=comm, options=in_fortran(options), stat=stat, &
                     errmsg=message)
    else
      call file%create(in_fortran(path), comm=comm, options=in_fortran(options), replace=.true., &
                       stat=stat, errmsg=message)
    end if
    call in_c(message, text)
    fortran_open = stat
  end function fortran_open

  integer(c_int) function fortran_define(path, dtype, n, shape, options, number, text) bind(C)
    character(kind=c_char), intent(in) :: path(*), options(*)
    integer(c_int), value :: dtype, n
    integer(c_int64_t), intent(in) :: shape(n)
    integer(c_int), intent(out) :: number
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    type(tailrace_field) :: field
    integer :: stat
    message = ''
    call file%define(in_fortran(path), int(dtype), shape(n:1:-1), field, &
                     options=in_fortran(options), stat=stat, errmsg=message)
    fields = [fields, field]
    number = size(fields)
    call in_c(message, text)
    fortran_define = stat
  end function fortran_define

  integer(c_int) function fortran_put(number, dtype, n, start, count, values, text) bind(C)
    integer(c_int), value :: number, dtype, n
    integer(c_int64_t), intent(in) :: start(n), count(n)
    type(c_ptr), value :: values
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    integer(c_int64_t) :: first(n), extents(n), n_values
    integer(c_int8_t), pointer :: i1(:)
    integer(c_int16_t), pointer :: i2(:)
    integer(c_int32_t), pointer :: i4(:)
    integer(c_int64_t), pointer :: i8(:)
    real(c_float), pointer :: r4(:)
    real(c_double), pointer :: r8(:)
    integer :: stat
    message = ''
    first = start(n:1:-1) + 1
    extents = count(n:1:-1)
    n_values = product(extents)
    select case (dtype)
    case (tailrace_real32)
      call c_f_pointer(values, r4, [n_values])
      call file%put(fields(number), r4, first, extents, stat=stat, errmsg=message)
    case (tailrace_real64)
      call c_f_pointer(values, r8, [n_values])
      call file%put(fields(number), r8, first, extents, stat=stat, errmsg=message)
    case (tailrace_int8, tailrace_uint8)
      call c_f_pointer(values, i1, [n_values])
      call file%put(fields(number), i1, first, extents, stat=stat, errmsg=message)
    case (tailrace_int16, tailrace_uint16)
      call c_f_pointer(values, i2, [n_values])
      call file%put(fields(number), i2, first, extents, stat=stat, errmsg=message)
    case (tailrace_int32, tailrace_uint32)
      call c_f_pointer(values, i4, [n_values])
      call file%put(fields(number), i4, first, extents, stat=stat, errmsg=message)
    case default
      call c_f_pointer(values, i8, [n_values])
      call file%put(fields(number), i8, first, extents, stat=stat, errmsg=message)
    end select
    call in_c(message, text)
    fortran_put = stat
  end function fortran_put

  integer(c_int) function fortran_attribute(object, name, n, integers, reals, text) bind(C)
    character(kind=c_char), intent(in) :: object(*), name(*)
    integer(c_int), value :: n
    integer(c_int64_t), intent(in), optional :: integers(n)
    real(c_double), intent(in), optional :: reals(n)
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    integer :: stat
    message = ''
    if (present(integers)) then
      call file%set_attribute(in_fortran(object), in_fortran(name), integers, stat, message)
    else
      call file%set_attribute(in_fortran(object), in_fortran(name), reals, stat, message)
    end if
    call in_c(message, text)
    fortran_attribute = stat
  end function fortran_attribute

  integer(c_int) function fortran_end_step(waits, text) bind(C)
    integer(c_int), value :: waits
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    integer :: stat
    message = ''
    call file%end_step(stat=stat, errmsg=message)
    if (stat == tailrace_ok) then
      call file%compute_begin()
      call file%compute_end()
      call file%idle(0.0005_c_double)
      if (waits /= 0) call file%wait(stat=stat, errmsg=message)
    end if
    call in_c(message, text)
    fortran_end_step = stat
  end function fortran_end_step

  integer(c_int) function fortran_close(text) bind(C)
    character(kind=c_char), intent(out) :: text(text_bytes)
    character(text_bytes) :: message
    integer :: stat
    message = ''
    call file%close(stat=stat, errmsg=message)
    call in_c(message, text)
    fortran_close = stat
  end function fortran_close

  subroutine fortran_abandon() bind(C)
    if (file%is_open()) call file%abandon()
  end subroutine fortran_abandon
end module workload_fortran
