! Test of the module tailrace under MPI, on any number of ranks. h5py checks its files
! (tests/python/test_fortran.py); the program checks returned and read values.
!
!   mpiexec -n N fortran_module FOLDER
module expectations
  use mpi_f08
  implicit none
  integer :: n_failed = 0, rank = 0, n_ranks = 1
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    n_failed = n_failed + 1
    print '(a,i0,2a)', 'rank ', rank, ' FAILED: ', what
  end subroutine expect

  !> `stat` and the text are the same on all ranks.
  subroutine expect_alike(stat, text, what)
    integer, intent(in) :: stat
    character(*), intent(in) :: text, what
    character(len(text)) :: first
    integer :: first_stat
    first = text
    first_stat = stat
    call MPI_Bcast(first, len(first), MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call MPI_Bcast(first_stat, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call expect(first == text .and. first_stat == stat, what//': ranks differ: '//trim(text))
  end subroutine expect_alike
end module expectations

program fortran_module
  use, intrinsic :: iso_fortran_env
  use expectations
  use tailrace
  implicit none
  character(512) :: folder
  integer, parameter :: nx = 6, ny = 5
  integer :: asked_times = 0

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  call get_command_argument(1, folder)
  call names_are_those_of_the_library()
  call every_type()
  call sections_and_buffers()
  call wrong_puts_fail_everywhere()
  call reads()
  call reads_attributes()
  call names_and_times()
  call steps_beside_the_program()
  call last_time()
  call order_in_texts()
  call alone()
  call MPI_Allreduce(MPI_IN_PLACE, n_failed, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(i0,a)', n_failed, ' failed'
  call MPI_Finalize()
  if (n_failed > 0) error stop 1

contains

  function in_folder(name) result(path)
    character(*), intent(in) :: name
    character(:), allocatable :: path
    path = trim(folder)//'/'//name
  end function in_folder

  subroutine names_are_those_of_the_library()
    integer, parameter :: errors(15) = [tailrace_ok, tailrace_invalid_argument, &
      tailrace_unsupported, tailrace_not_found, tailrace_already_exists, tailrace_disagreement, &
      tailrace_bad_coverage, tailrace_plugin_missing, tailrace_codec_failed, &
      tailrace_bound_broken, tailrace_corrupt, tailrace_io, tailrace_no_space, &
      tailrace_out_of_memory, tailrace_internal]
    character(16), parameter :: names(15) = [character(16) :: 'ok', 'invalid_argument', &
      'unsupported', 'not_found', 'already_exists', 'disagreement', 'bad_coverage', &
      'plugin_missing', 'codec_failed', 'bound_broken', 'corrupt', 'io_error', 'no_space', &
      'out_of_memory', 'internal']
    integer :: i
    do i = 1, size(errors)
      call expect(tailrace_error_name(errors(i)) == trim(names(i)), &
                  trim(names(i))//' is '//tailrace_error_name(errors(i)))
    end do
    call expect(len(tailrace_version()) >= 5, 'version')
  end subroutine names_are_those_of_the_library

  !> Each rank writes one column: element (i, j) is 10 i + j.
  subroutine every_type()
    type(tailrace_file) :: file
    type(tailrace_field) :: fields(10), scalar, none
    integer(int8) :: i8(nx, 1)
    integer(int16) :: i16(nx, 1)
    integer(int32) :: i32(nx, 1)
    integer(int64) :: i64(nx, 1)
    real(real32) :: r32(nx, 1)
    real(real64) :: r64(nx, 1)
    integer :: i, start(2)
    character(4), parameter :: names(10) = [character(4) :: 'f32', 'f64', 'i8', 'i16', 'i32', &
                                            'i64', 'u8', 'u16', 'u32', 'u64']
    call file%create(in_folder('types.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    do i = 1, 10
      call file%define('/'//trim(names(i)), i, [nx, n_ranks], fields(i))
    end do
    i8(:, 1) = [(int(10*i + rank + 1, int8), i=1, nx)]
    i16 = i8
    i32 = i8
    i64 = i8
    r32 = i8
    r64 = i8
    start = [1, rank + 1]
    call file%put(fields(tailrace_real32), r32, start=start)
    call file%put(fields(tailrace_real64), r64, start=start)
    call file%put(fields(tailrace_int8), i8, start=start)
    call file%put(fields(tailrace_int16), i16, start=start)
    call file%put(fields(tailrace_int32), i32, start=int(start, int64))
    call file%put(fields(tailrace_int64), i64, start=int(start, int16))
    call file%put(fields(tailrace_uint8), i8, start=start)
    call file%put(fields(tailrace_uint16), i16, start=start)
    call file%put(fields(tailrace_uint32), i32, start=start)
    call file%put(fields(tailrace_uint64), i64, start=start)
    call file%define('/scalar', tailrace_real64, [integer ::], scalar)
    call file%define('/empty', tailrace_real64, [0, 3], none)
    if (rank == 0) call file%put(scalar, 2.5_real64)
    call file%set_attribute('/f32', 'text', 'blanks at its end go   ')
    call file%set_attribute('/f32', 'whole', 7_int64)
    call file%set_attribute('/f32', 'wholes', [1, 2, 3])
    call file%set_attribute('/f32', 'real', 0.5_real32)
    call file%set_attribute('/', 'reals', [0.5_real64, 1.5_real64])
    call file%close()
    call expect(.not. file%is_open(), 'is closed')
  end subroutine every_type

  !> Each rank writes a plane of (nx, ny, n_ranks), from sections with gaps, from a buffer of one
  !! dimension, from an assumed-size array, and without a copy.
  subroutine sections_and_buffers()
    type(tailrace_file) :: file
    type(tailrace_field) :: gaps, buffer, assumed, in_place, expression, halo, upside_down
    real(real64) :: wide(2*nx, 3, 2*ny), plane(nx, ny, 1), flat(nx*ny), padded(0:nx+1, 0:ny+1, 1)
    integer :: i, j, whole(3), count(3), start(3), stat
    character(300) :: text
    whole = [nx, ny, n_ranks]
    count = [nx, ny, 1]
    start = [1, 1, rank + 1]
    do j = 1, ny
      do i = 1, nx
        plane(i, j, 1) = i + 10*j + 100*(rank + 1)
      end do
    end do
    wide = -1
    wide(::2, 2:2, ::2) = reshape(plane, [nx, 1, ny])
    flat = reshape(plane, [nx*ny])
    padded = -1
    padded(1:nx, 1:ny, :) = plane
    call file%create(in_folder('parts.h5'), comm=MPI_COMM_WORLD%mpi_val, codec='portable', &
                     options='replace=on')
    call file%define('/gaps', tailrace_real64, whole, gaps, chunk=[nx, 2, 1])
    call file%define('/buffer', tailrace_real64, whole, buffer, bound='abs=1e-6')
    call file%define('/assumed', tailrace_real64, whole, assumed, fill=-7)
    call file%define('/in_place', tailrace_real64, whole, in_place, fill=-9.5_real64)
    call file%define('/expression', tailrace_real64, whole, expression, fill=0.1)
    call file%define('/halo', tailrace_real64, whole, halo)
    call file%define('/upside_down', tailrace_real64, whole, upside_down)
    call file%put(halo, padded(1:nx, 1:ny, :), start=start, copy=.false.)
    call file%put(upside_down, plane(:, ny:1:-1, :), start=start, copy=.false.)
    call file%put(gaps, wide(::2, 2, ::2), start=start, count=count)
    call file%put(buffer, flat, start=start, count=count)
    call put_assumed(file, assumed, flat, start, count)
    call file%put(in_place, plane, start=start, copy=.false.)
    call file%put(expression, 2*plane, start=start)
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat == tailrace_ok, 'parts: '//trim(text))
    call file%close()
  end subroutine sections_and_buffers

  !> Names, coordinates and times of three steps; Python reads them.
  subroutine names_and_times()
    type(tailrace_file) :: file
    type(tailrace_field) :: u, mean
    real(real32) :: values(nx, 1)
    real(real64) :: x(2*nx)
    integer :: i, step, stat
    character(300) :: text
    x = [(0.5_real64*i, i = 1, 2*nx)]
    call file%create(in_folder('named.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    call file%define('/u', tailrace_real32, [nx, n_ranks], u, over_time=.true., &
                     dims=[character(4) :: 'x', 'rank'])
    call file%define('/mean', tailrace_real32, [integer ::], mean, over_time=.true., &
                     time_dim='time')
    call file%set_coordinate('/x', x(2::2), units='m')
    call file%set_coordinate('/rank', [(i, i = 1, n_ranks)])
    do step = 0, 2
      values = step + rank
      call file%put(u, values, start=[1, rank + 1])
      if (rank == 0) call file%put(mean, 0.5_real32*step)
      call file%set_time(0.25_real64*step, units='days since 2000-01-01')
      call file%end_step()
    end do
    call file%define('/v', tailrace_real32, [nx, n_ranks], u, dims=['x'], stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. index(text, 'field "/v": dims has 1') == 1, &
                'one name for two dimensions: '//trim(text))
    call file%end_step(stat=stat)
    call expect(stat /= tailrace_ok, 'a step with too few names')
    call file%set_coordinate('/y', [.true.], stat=stat, errmsg=text)
    call expect(index(text, 'coordinate "/y": values must be a list') == 1, 'logical: '//trim(text))
    call file%abandon()
  end subroutine names_and_times

  subroutine put_assumed(file, field, values, start, count)
    type(tailrace_file), intent(in) :: file
    type(tailrace_field), intent(in) :: field
    real(real64), intent(in) :: values(*)
    integer, intent(in) :: start(3), count(3)
    call file%put(field, values(:count(1)*count(2)), start=start, count=count)
  end subroutine put_assumed

  !> An error of one rank before it calls the library fails the step on all ranks; the file stays
  !! usable.
  subroutine wrong_puts_fail_everywhere()
    type(tailrace_file) :: file
    type(tailrace_field) :: field
    real(real32) :: of_other_type(nx, 1)
    real(real64) :: right(nx, 1), wide(2*nx, 1)
    integer :: stat, end_stat, kind
    character(300) :: text, end_text
    right = rank
    wide = rank
    of_other_type = 0
    call file%create(in_folder('wrong.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    do kind = 1, 8
      call file%define('/u', tailrace_real64, [nx, n_ranks], field)
      text = ''
      end_text = ''
      stat = tailrace_ok
      if (rank == n_ranks - 1) then
        select case (kind)
        case (1)
          call file%put(field, of_other_type, start=[1, rank + 1], stat=stat, errmsg=text)
        case (2)
          call file%put(field, right, start=[0, rank + 1], stat=stat, errmsg=text)
        case (3)
          call file%put(field, right, start=[1], stat=stat, errmsg=text)
        case (4)
          call file%put(field, right(:, 1), start=[1, rank + 1], stat=stat, errmsg=text)
        case (5)
          call file%put(field, wide(::2, 1), start=[1, rank + 1], count=[nx, 1], copy=.false., &
                        stat=stat, errmsg=text)
        case (6)
          call file%put(field, right, start=[1, rank + 1], count=[nx, 2], stat=stat, errmsg=text)
        case (7)
          call file%put(field, cmplx(right, kind=real32), start=[1, rank + 1], stat=stat, &
                        errmsg=text)
        case (8)
          call file%put(field, int(right, int64), start=[1, rank + 1], stat=stat, errmsg=text)
        end select
        call expect(stat == tailrace_invalid_argument .and. index(text, 'field "/u": ') == 1, &
                    'a wrong put: '//trim(text))
      else
        call file%put(field, right, start=[1, rank + 1])
      end if
      call file%end_step(stat=end_stat, errmsg=end_text)
      call expect(end_stat /= tailrace_ok .and. &
                  index(end_text, ' is lost, and no step of this run is known') > 0, &
                  'a step with a wrong put: '//trim(end_text))
      if (rank == n_ranks - 1) call expect(index(end_text, trim(text)) > 0, 'why: '//trim(end_text))
      call expect_alike(end_stat, end_text, 'a wrong put')
    end do
    call file%define('/u', tailrace_real64, [nx, n_ranks], field)
    call file%put(field, right, start=[1, rank + 1])
    call file%set_attribute('/u', 'square', reshape([1, 2, 3, 4], [2, 2]), stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument, 'an attribute of two dimensions')
    call file%end_step(stat=stat)
    call expect(stat /= tailrace_ok, 'a step with a wrong attribute')
    call file%define('/u', tailrace_real64, [nx, n_ranks], field)
    call file%put(field, right, start=[1, rank + 1])
    call file%close(stat=stat, errmsg=text)
    call expect(stat == tailrace_ok, 'after wrong puts: '//trim(text))
    call file%end_step(stat=stat)
    call expect(stat == tailrace_invalid_argument, 'a closed file')
  end subroutine wrong_puts_fail_everywhere

  subroutine reads()
    type(tailrace_reader) :: reader
    integer(int64), allocatable :: shape_there(:)
    real(real64) :: whole(nx, ny, n_ranks), wide(2*nx, ny), part(2, 2, 1), none(nx, ny, 0)
    real(real32) :: of_other_type(nx, ny, n_ranks)
    integer :: dtype, stat, i, last
    logical :: found
    character(300) :: text
    call reader%open(in_folder('parts.h5'), comm=MPI_COMM_WORLD%mpi_val)
    call reader%inquire('/gaps', shape_there, dtype)
    call expect(all(shape_there == [nx, ny, n_ranks]) .and. dtype == tailrace_real64, 'inquire')
    found = .false.
    do i = 1, reader%n_datasets()
      found = found .or. reader%path(i) == '/in_place'
    end do
    call expect(found .and. reader%path(0) == '' .and. reader%path(99) == '', 'paths')
    call reader%read('/gaps', whole)
    call expect(abs(whole(3, 4, n_ranks) - (43 + 100*n_ranks)) < 1e-12_real64, 'a whole field')
    wide = -1
    call reader%read('/in_place', wide(::2, :), start=[1, 1, n_ranks], count=[nx, ny, 1])
    call expect(all(wide(2::2, :) < 0) .and. abs(wide(5, 4) - (43 + 100*n_ranks)) < 1e-12_real64, &
                'into a section')
    call reader%read('/gaps', part, start=[2, 1, n_ranks], stride=[3, 2, 1])
    last = 100*n_ranks
    call expect(all(abs(reshape(part, [4]) - [12 + last, 15 + last, 32 + last, 35 + last]) &
                    < 1e-12_real64), 'with strides')
    if (rank == 0) then
      call reader%read_all('/assumed', whole)
      call expect(abs(whole(3, 4, 1) - 143) < 1e-12_real64, 'read_all')
    else
      call reader%read_all('/assumed', none)
    end if
    call reader%read('/gaps', of_other_type, stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. index(text, 'real of 8') > 0, trim(text))
    call reader%read('/nothing', whole, stat=stat)
    call expect(stat == tailrace_not_found, 'a dataset that is not there')
    if (rank == n_ranks - 1) then
      call reader%read_all('/gaps', of_other_type, stat=stat, errmsg=text)
    else
      call reader%read_all('/gaps', whole, stat=stat, errmsg=text)
    end if
    call expect(stat /= tailrace_ok .and. text /= '', 'read_all where one rank asks wrongly')
    call reader%refresh()
    call reader%read_all('/gaps', whole)
    call reader%close()
    call reader%open(in_folder('nothing.h5'), comm=MPI_COMM_WORLD%mpi_val, stat=stat, errmsg=text)
    call expect(stat == tailrace_not_found, 'a file that is not there')
    call expect_alike(stat, text, 'a file that is not there')
  end subroutine reads

  subroutine reads_attributes()
    type(tailrace_reader) :: reader
    character(:), allocatable :: text, texts(:)
    integer(int32) :: whole
    integer(int64) :: long
    real(real32) :: single
    real(real64) :: double
    integer(int32), allocatable :: wholes(:)
    real(real32), allocatable :: singles(:)
    real(real64), allocatable :: doubles(:)
    character(300) :: why
    integer :: stat, i
    logical :: found
    call reader%open(in_folder('types.h5'), comm=MPI_COMM_WORLD%mpi_val)
    call reader%get_attribute('/f32', 'text', text)
    call expect(text == 'blanks at its end go', 'a text: '//text)
    allocate (character(0) :: texts(0))  ! gfortran 12 warns of its length otherwise.
    call reader%get_attribute('/f32', 'text', texts)
    call expect(size(texts) == 1 .and. texts(1) == text, 'texts')
    call reader%get_attribute('/f32', 'whole', whole)
    call reader%get_attribute('/f32', 'whole', long)
    call reader%get_attribute('/f32', 'whole', double)
    call expect(whole == 7 .and. long == 7 .and. abs(double - 7) < 1e-9_real64, 'a number')
    call reader%get_attribute('/f32', 'real', single)
    call reader%get_attribute('/f32', 'wholes', wholes)
    call reader%get_attribute('/', 'reals', singles)
    call reader%get_attribute('/', 'reals', doubles)
    call expect(abs(single - 0.5) < 1e-6 .and. all(wholes == [1, 2, 3]), 'single precision, list')
    call expect(all(abs(singles - doubles) < 1e-6) .and. size(doubles) == 2, 'lists of reals')
    found = .false.
    do i = 1, reader%n_attributes('/f32')
      found = found .or. reader%attribute_name('/f32', i) == 'wholes'
    end do
    call expect(found .and. reader%attribute_name('/f32', 99) == '', 'names of attributes')
    call reader%get_attribute('/f32', 'whloe', whole, stat=stat, errmsg=why)
    call expect(stat == tailrace_not_found .and. index(why, 'did you mean "whole"') > 0, trim(why))
    call reader%get_attribute('/f32', 'wholes', whole, stat=stat, errmsg=why)
    call expect(stat == tailrace_invalid_argument .and. index(why, '3 values') > 0, trim(why))
    call reader%get_attribute('/f32', 'text', whole, stat=stat, errmsg=why)
    call expect(stat == tailrace_invalid_argument .and. index(why, 'not numbers') > 0, trim(why))
    call reader%get_attribute('/', 'reals', wholes, stat=stat, errmsg=why)
    call expect(stat == tailrace_invalid_argument .and. index(why, 'cannot hold') > 0, trim(why))
    call reader%close()
  end subroutine reads_attributes

  logical function after_three()
    asked_times = asked_times + 1
    after_three = asked_times >= 3
  end function after_three

  subroutine sleep_till_three()
    asked_times = 2
  end subroutine sleep_till_three

  subroutine steps_beside_the_program()
    type(tailrace_file) :: file
    type(tailrace_field) :: field
    type(tailrace_report) :: report
    real(real32) :: values(nx, ny)
    integer :: step
    character(7), parameter :: modes(2) = ['async  ', 'in_situ']
    integer :: m
    do m = 1, 2
      call file%create(in_folder(trim(modes(m))//'.h5'), comm=MPI_COMM_WORLD%mpi_val, &
                       mode=modes(m), replace=.true.)
      call file%define('/t', tailrace_real32, [nx, ny*n_ranks], field, over_time=.true.)
      do step = 1, 3
        values = real(step + rank, real32)
        call file%put(field, values, start=[1, ny*rank + 1])
        call file%end_step(report)
        call expect((report%is_there == 1) .eqv. (step > 1), 'reports come a step later')
        values = -1  ! the library has a copy
        call file%compute_begin()
        call file%compute_end()
        call file%background_begin()
        call file%background_end()
        call file%idle(0.001_real64)
        asked_times = 0
        call file%idle_until(after_three)
        call expect(asked_times >= 3, 'idle_until')
        asked_times = 0
        call file%idle_until(after_three, sleep_till_three)
        call expect(asked_times == 3, 'idle_until that waits')
      end do
      call file%wait(report)
      call expect(report%is_there == 1 .and. report%step_index == 3, 'wait')
      call expect(file%last_committed_step() == 3, 'the last committed step, counted from 1')
      call expect(report%raw_bytes == 4_int64*nx*ny*n_ranks, 'bytes of a step')
      call file%close()
      call file%open(in_folder(trim(modes(m))//'.h5'), comm=MPI_COMM_WORLD%mpi_val)
      call file%define('/t', tailrace_real32, [nx, ny*n_ranks], field, over_time=.true.)
      values = real(4 + rank, real32)
      call file%put(field, values, start=[1, ny*rank + 1])
      call file%close()
      call read_steps(in_folder(trim(modes(m))//'.h5'))
    end do
  end subroutine steps_beside_the_program

  !> Each rank reads the part of the next one.
  subroutine read_steps(path)
    character(*), intent(in) :: path
    type(tailrace_reader) :: reader
    real(real32) :: values(nx, ny), whole(nx, ny*n_ranks)
    integer :: step, other, stat
    character(300) :: text
    other = mod(rank + 1, n_ranks)
    call reader%open(path, comm=MPI_COMM_WORLD%mpi_val)
    call expect(reader%n_steps() == 4 .and. reader%n_steps('/t') == 4, 'n_steps')
    do step = 1, 4
      call reader%read_step('/t', step, values, start=[1, ny*other + 1])
      call expect(all(abs(values - (step + other)) < 1e-6), 'read_step')
    end do
    call reader%read_step('/t', reader%n_steps(), whole)
    call expect(abs(whole(1, 1) - 4) < 1e-6, 'a whole step')
    call reader%read_step('/t', merge(5, 1, rank == 0), whole, stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. index(text, 'step 5 does not exist') > 0, &
                trim(text))
    call reader%read_step('/t', 0, whole, stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. &
                index(text, 'step 0 does not exist; it has 4, counted from 1') > 0, trim(text))
    call reader%close()
    call calls_too_early()
  end subroutine read_steps

  !> Calls on a file that is not open, and on a field that is not defined, are named.
  subroutine calls_too_early()
    type(tailrace_file) :: file
    type(tailrace_field) :: field
    integer :: stat
    character(300) :: text
    call file%define('/u', tailrace_real64, [4], field, stat=stat, errmsg=text)
    call expect(index(text, 'define: the file is not open') > 0, trim(text))
    call file%end_step(stat=stat, errmsg=text)
    call expect(index(text, 'end_step: the file is not open') > 0, trim(text))
    call file%create(in_folder('early.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    call expect(file%last_committed_step() == 0, 'no step is committed')
    call file%put(field, [1d0, 2d0], stat=stat, errmsg=text)
    call expect(index(text, 'put: the field is not defined') > 0, trim(text))
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument, trim(text))
    call file%close()
  end subroutine calls_too_early

  !> The last entry of /time, beside a field without names, tells a restart its step.
  subroutine last_time()
    type(tailrace_file) :: file
    type(tailrace_reader) :: reader
    type(tailrace_field) :: field
    real(real64) :: t
    integer :: step, stat
    character(300) :: text
    call file%create(in_folder('last_time.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    call file%define('/u', tailrace_int32, [n_ranks], field, over_time=.true.)
    do step = 1, 3
      call file%put(field, [step], start=[rank + 1])
      if (step < 3) call file%set_time(0.5_real64*step)
      call file%end_step(stat=stat, errmsg=text)
      call expect((stat == tailrace_ok) .eqv. (step < 3), 'a step without its time: '//trim(text))
    end do
    call expect(index(text, 'call set_time in each step') > 0, trim(text))
    call file%close()
    call reader%open(in_folder('last_time.h5'), comm=MPI_COMM_WORLD%mpi_val)
    call expect(reader%n_steps('/u') == 2 .and. reader%n_steps('/time') == 2, 'entries')
    t = -1
    call reader%read_step('/time', reader%n_steps('/time'), t)
    call expect(abs(t - 1) < 1e-12_real64, 'the last time')
    call reader%close()
  end subroutine last_time

  !> Texts of the library with boxes or shapes name their order; other texts do not.
  subroutine order_in_texts()
    type(tailrace_file) :: file
    type(tailrace_field) :: field
    integer :: stat
    character(400) :: text
    character(*), parameter :: order = "(boxes and shapes: in the file's order, from 0)"
    call file%create(in_folder('order.h5'), comm=MPI_COMM_WORLD%mpi_val, codec='tzr', &
                     replace=.true., stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. index(text, 'did you mean "trz"?') > 0 .and. &
                index(text, order) == 0, 'an unknown codec: '//trim(text))
    call file%create(in_folder('order.h5'), comm=MPI_COMM_WORLD%mpi_val, replace=.true.)
    call file%define('/u', tailrace_real64, [16, 8], field)
    call file%put(field, reshape([1d0, 2d0], [1, 2]), start=[17, 1], stat=stat, errmsg=text)
    call expect(stat /= tailrace_ok .and. index(text, order) > 0, 'outside: '//trim(text))
    call file%end_step(stat=stat, errmsg=text)
    call expect(stat /= tailrace_ok .and. index(text, order) > 0, 'a step with it: '//trim(text))
    call expect_alike(stat, text, 'a box outside')
    call file%put(field, reshape([1d0, 2d0], [1, 2]), stat=stat, errmsg=text)
    call expect(index(text, 'its definition was lost') > 0 .and. index(text, order) == 0, trim(text))
    call file%abandon()
  end subroutine order_in_texts

  !> A file without a communicator is abandoned.
  subroutine alone()
    type(tailrace_file) :: file, again
    type(tailrace_field) :: field
    character(300) :: text
    character(8) :: number
    integer :: stat
    logical :: there
    write (number, '(i0)') rank
    call file%create(in_folder('alone'//trim(number)//'.h5'))
    call file%define('/u', tailrace_int32, [3], field)
    call file%put(field, [rank, 2, 3])
    call file%close()
    call again%create(in_folder('alone'//trim(number)//'.h5'), stat=stat, errmsg=text)
    call expect(stat == tailrace_already_exists, trim(text))
    call expect(.not. again%is_open(), 'open after a failed create')
    call file%create(in_folder('given_up'//trim(number)//'.h5'))
    call file%open(in_folder('alone'//trim(number)//'.h5'), stat=stat, errmsg=text)
    call expect(stat == tailrace_invalid_argument .and. file%is_open(), trim(text))
    call file%abandon()
    inquire (file=in_folder('given_up'//trim(number)//'.h5'), exist=there)
    call expect(.not. there, 'nothing is left of a file that was given up')
    call file%create(in_folder('nonsense'//trim(number)//'.h5'), mode='nonsense', stat=stat, errmsg=text)
    call expect(stat /= tailrace_ok .and. index(text, 'nonsense') > 0, trim(text))
  end subroutine alone
end program fortran_module
