!> Tailrace for Fortran 2018: parallel compressed writing, and reading, of HDF5 files.
!!
!! The types tailrace_file and tailrace_reader provide the calls of tailrace.h and reader.h. The
!! rules of collectivity, threads and steps there apply here; docs/fortran.md is the manual.
!! Differences:
!!  * Arrays are in Fortran's order: extents and positions list the first dimension first, and
!!    positions begin at 1. The file, and programs in other languages, use the reverse order.
!!  * put() copies the values, unless the caller promises with copy=.false. to leave them unchanged.
!!  * Errors are returned in stat= and errmsg=, as by Fortran's statements; without stat= the
!!    program stops with error stop.
!! Call close() or abandon() to end an object of either type; leaving its scope does not end it.
!! Copies of an object refer to the same file.
module tailrace
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! Pinned numbers of tailrace.h (tests/fortran/module.f90 compares them with the library's).
  integer, parameter, public :: tailrace_ok = 0
  integer, parameter, public :: tailrace_invalid_argument = 1
  integer, parameter, public :: tailrace_unsupported = 2
  integer, parameter, public :: tailrace_not_found = 3
  integer, parameter, public :: tailrace_already_exists = 4
  integer, parameter, public :: tailrace_disagreement = 5
  integer, parameter, public :: tailrace_bad_coverage = 6
  integer, parameter, public :: tailrace_plugin_missing = 7
  integer, parameter, public :: tailrace_codec_failed = 8
  integer, parameter, public :: tailrace_bound_broken = 9
  integer, parameter, public :: tailrace_corrupt = 10
  integer, parameter, public :: tailrace_io = 11
  integer, parameter, public :: tailrace_no_space = 12
  integer, parameter, public :: tailrace_out_of_memory = 13
  integer, parameter, public :: tailrace_internal = 14

  !> Types of elements. Fortran has no unsigned integers: its signed integers carry their bits.
  integer, parameter, public :: tailrace_real32 = 1
  integer, parameter, public :: tailrace_real64 = 2
  integer, parameter, public :: tailrace_int8 = 3
  integer, parameter, public :: tailrace_int16 = 4
  integer, parameter, public :: tailrace_int32 = 5
  integer, parameter, public :: tailrace_int64 = 6
  integer, parameter, public :: tailrace_uint8 = 7
  integer, parameter, public :: tailrace_uint16 = 8
  integer, parameter, public :: tailrace_uint32 = 9
  integer, parameter, public :: tailrace_uint64 = 10

  integer, parameter :: most_dims = 32
  !> Step number that stands for the whole dataset (NO_STEP in fortran_bridge.c).
  integer(c_int64_t), parameter :: no_step = -huge(0_c_int64_t)

  !> A field of one file, valid from define() until the file is closed.
  type, public :: tailrace_field
    private
    integer(c_int64_t) :: number = -1
    integer(c_int) :: dtype = 0
    integer(c_size_t) :: n_dims = 0
  end type tailrace_field

  !> Report of one step, over all ranks; seconds are those of the slowest rank.
  type, public, bind(C) :: tailrace_report
    integer(c_int64_t) :: step_index     !< counted from 1
    integer(c_int64_t) :: n_fields
    integer(c_int64_t) :: raw_bytes      !< uncompressed
    integer(c_int64_t) :: encoded_bytes
    integer(c_int64_t) :: file_bytes     !< length of the file after the step
    integer(c_int64_t) :: n_writes, peak_memory_bytes
    real(c_double) :: ratio              !< raw_bytes / encoded_bytes
    real(c_double) :: step_s             !< end_step, from call to return
    real(c_double) :: encode_s, write_s
    real(c_double) :: makespan_s         !< encoding and writing together
    real(c_double) :: hidden_share       !< share of the shorter activity that overlapped the longer
    real(c_double) :: sync_s, commit_s
    real(c_double) :: exposed_s          !< modes async and in_situ: time lost to the step
    real(c_double) :: idle_encode_s      !< encoding in the program's idle time
    integer(c_int) :: is_there           !< 0: no step to report yet (deferred modes)
    integer(c_int64_t) :: n_waiting_steps !< buffered for chunks of several steps
    integer(c_int64_t) :: waiting_bytes  !< bytes of these steps, uncompressed
  end type tailrace_report

  type, public :: tailrace_file
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int) :: rank = 0
  contains
    procedure :: create => file_create
    procedure :: open => file_open
    procedure :: close => file_close
    procedure :: abandon => file_abandon
    procedure :: is_open => file_is_open
    procedure :: define => file_define
    procedure :: put => file_put
    procedure :: copy_from_device => file_copy_from_device
    procedure :: put_device => file_put_device
    generic :: set_attribute => set_text, set_int32, set_int64, set_real32, set_real64
    procedure, private :: set_text, set_int32, set_int64, set_real32, set_real64
    procedure :: set_coordinate => file_set_coordinate
    procedure :: set_time => file_set_time
    procedure :: fail_step => file_fail_step
    procedure :: end_step => file_end_step
    procedure :: last_committed_step => file_last_committed_step
    procedure :: wait => file_wait
    procedure :: compute_begin => file_compute_begin
    procedure :: compute_end => file_compute_end
    procedure :: background_begin => file_background_begin
    procedure :: background_end => file_background_end
    procedure :: idle => file_idle
    procedure :: idle_until => file_idle_until
  end type tailrace_file

  type, public :: tailrace_reader
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: open => reader_open
    procedure :: close => reader_close
    procedure :: abandon => reader_abandon
    procedure :: refresh => reader_refresh
    procedure :: n_datasets => reader_n_datasets
    procedure :: path => reader_path
    procedure :: inquire => reader_inquire
    procedure :: read => reader_read
    procedure :: read_all => reader_read_all
    procedure :: n_steps => reader_n_steps
    procedure :: read_step => reader_read_step
    procedure :: n_attributes => reader_n_attributes
    procedure :: attribute_name => reader_attribute_name
    generic :: get_attribute => get_text, get_texts, get_int32, get_int64, get_real32, get_real64, &
      get_int32_list, get_int64_list, get_real32_list, get_real64_list
    procedure, private :: get_text, get_texts, get_int32, get_int64, get_real32, get_real64
    procedure, private :: get_int32_list, get_int64_list, get_real32_list, get_real64_list
  end type tailrace_reader

  abstract interface
    !> Returns .true. once the awaited event has occurred; see idle_until().
    logical function tailrace_done()
    end function tailrace_done
    !> Sleeps until the awaited event has occurred; see idle_until().
    subroutine tailrace_wait()
    end subroutine tailrace_wait
  end interface
  public :: tailrace_done, tailrace_wait

  public :: tailrace_version, tailrace_error_name, tailrace_recover

  !> Current callbacks of idle_until(). One pair suffices, because one thread at a time calls
  !! Tailrace.
  procedure(tailrace_done), pointer :: asked => null()
  procedure(tailrace_wait), pointer :: sleeper => null()

  interface
    function c_file(path, opens, comm, options, file) bind(C, name="tailrace_fortran_file")
      import
      character(kind=c_char), intent(in) :: path(*), options(*)
      integer(c_int), value :: opens
      integer(c_int), intent(in), optional :: comm
      type(c_ptr), intent(inout) :: file
      integer(c_int) :: c_file
    end function c_file
    function c_recover(path, comm, exists) bind(C, name="tailrace_fortran_recover")
      import
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), intent(in), optional :: comm
      integer(c_int), intent(out) :: exists
      integer(c_int) :: c_recover
    end function c_recover
    function c_close(file) bind(C, name="tailrace_fortran_close")
      import
      type(c_ptr), value :: file
      integer(c_int) :: c_close
    end function c_close
    subroutine c_abandon(file) bind(C, name="tailrace_file_abandon")
      import
      type(c_ptr), value :: file
    end subroutine c_abandon
    function c_define(file, path, dtype, shape, chunk, names, n_names, time_name, options, field, &
                      n_dims) bind(C, name="tailrace_fortran_define")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: path(*), names(*), time_name(*), options(*)
      integer(c_int), value :: dtype, n_names
      type(*), dimension(..), intent(in) :: shape
      type(*), dimension(..), intent(in), optional :: chunk
      integer(c_int64_t), intent(out) :: field
      integer(c_size_t), intent(out) :: n_dims
      integer(c_int) :: c_define
    end function c_define
    function c_put(file, field, dtype, n_dims, start, count, values, copies) &
        bind(C, name="tailrace_fortran_put")
      import
      type(c_ptr), value :: file
      integer(c_int64_t), value :: field
      integer(c_int), value :: dtype, copies
      integer(c_size_t), value :: n_dims
      type(*), dimension(..), intent(in), optional :: start, count
      type(*), dimension(..), intent(in) :: values
      integer(c_int) :: c_put
    end function c_put
    include 'device_calls.inc'
    function c_attribute(file, path, name, value) bind(C, name="tailrace_fortran_attribute")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: path(*), name(*)
      type(*), dimension(..), intent(in) :: value
      integer(c_int) :: c_attribute
    end function c_attribute
    function c_text_attribute(file, path, name, text) &
        bind(C, name="tailrace_fortran_text_attribute")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: path(*), name(*), text(*)
      integer(c_int) :: c_text_attribute
    end function c_text_attribute
    function c_coordinate(file, path, values, units) bind(C, name="tailrace_fortran_coordinate")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: path(*), units(*)
      type(*), dimension(..), intent(in) :: values
      integer(c_int) :: c_coordinate
    end function c_coordinate
    function c_time(file, path, value, units) bind(C, name="tailrace_fortran_time")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: path(*), units(*)
      real(c_double), value :: value
      integer(c_int) :: c_time
    end function c_time
    function c_fail_step(file, why) bind(C, name="tailrace_fortran_fail_step")
      import
      type(c_ptr), value :: file
      character(kind=c_char), intent(in) :: why(*)
      integer(c_int) :: c_fail_step
    end function c_fail_step
    function c_end_step(file, waits, report) bind(C, name="tailrace_fortran_end_step")
      import
      type(c_ptr), value :: file
      integer(c_int), value :: waits
      type(tailrace_report), intent(out) :: report
      integer(c_int) :: c_end_step
    end function c_end_step
    function c_last_committed_step(file) bind(C, name="tailrace_file_last_committed_step")
      import
      type(c_ptr), value :: file
      integer(c_int64_t) :: c_last_committed_step
    end function c_last_committed_step
    subroutine c_compute_begin(file) bind(C, name="tailrace_file_compute_begin")
      import
      type(c_ptr), value :: file
    end subroutine c_compute_begin
    subroutine c_compute_end(file) bind(C, name="tailrace_file_compute_end")
      import
      type(c_ptr), value :: file
    end subroutine c_compute_end
    subroutine c_background_begin(file) bind(C, name="tailrace_file_background_begin")
      import
      type(c_ptr), value :: file
    end subroutine c_background_begin
    subroutine c_background_end(file) bind(C, name="tailrace_file_background_end")
      import
      type(c_ptr), value :: file
    end subroutine c_background_end
    subroutine c_idle(file, seconds) bind(C, name="tailrace_file_idle")
      import
      type(c_ptr), value :: file
      real(c_double), value :: seconds
    end subroutine c_idle
    subroutine c_idle_or_wait(file, done, wait, user) bind(C, name="tailrace_file_idle_or_wait")
      import
      type(c_ptr), value :: file, user
      type(c_funptr), value :: done, wait
    end subroutine c_idle_or_wait
    function c_reader(path, comm, options, reader) bind(C, name="tailrace_fortran_reader")
      import
      character(kind=c_char), intent(in) :: path(*), options(*)
      integer(c_int), intent(in), optional :: comm
      type(c_ptr), intent(inout) :: reader
      integer(c_int) :: c_reader
    end function c_reader
    function c_reader_close(reader) bind(C, name="tailrace_fortran_reader_close")
      import
      type(c_ptr), value :: reader
      integer(c_int) :: c_reader_close
    end function c_reader_close
    subroutine c_reader_abandon(reader) bind(C, name="tailrace_reader_abandon")
      import
      type(c_ptr), value :: reader
    end subroutine c_reader_abandon
    function c_refresh(reader) bind(C, name="tailrace_fortran_refresh")
      import
      type(c_ptr), value :: reader
      integer(c_int) :: c_refresh
    end function c_refresh
    function c_n_datasets(reader) bind(C, name="tailrace_reader_n_datasets")
      import
      type(c_ptr), value :: reader
      integer(c_size_t) :: c_n_datasets
    end function c_n_datasets
    function c_path(reader, number) bind(C, name="tailrace_fortran_path")
      import
      type(c_ptr), value :: reader
      integer(c_int64_t), value :: number
      type(c_ptr) :: c_path
    end function c_path
    function c_inquire(reader, path, dataset, dtype, n_dims, extents) &
        bind(C, name="tailrace_fortran_inquire")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: path(*)
      integer(c_size_t), intent(out) :: dataset
      integer(c_int), intent(out) :: dtype, n_dims
      integer(c_int64_t), intent(inout) :: extents(*)
      integer(c_int) :: c_inquire
    end function c_inquire
    function c_attribute_name(reader, object, number) &
        bind(C, name="tailrace_fortran_attribute_name")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: object(*)
      integer(c_int64_t), value :: number
      type(c_ptr) :: c_attribute_name
    end function c_attribute_name
    function c_n_attributes(reader, object, n) bind(C, name="tailrace_fortran_n_attributes")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: object(*)
      integer(c_int64_t), intent(out) :: n
      integer(c_int) :: c_n_attributes
    end function c_n_attributes
    function c_attribute_values(reader, object, name, texts, n_wanted, n_values) &
        bind(C, name="tailrace_fortran_attribute_values")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: object(*), name(*)
      integer(c_int), value :: texts
      integer(c_size_t), value :: n_wanted
      integer(c_size_t), intent(out) :: n_values
      integer(c_int) :: c_attribute_values
    end function c_attribute_values
    function c_attribute_text(reader, object, name, number) &
        bind(C, name="tailrace_fortran_attribute_text")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: object(*), name(*)
      integer(c_int64_t), value :: number
      type(c_ptr) :: c_attribute_text
    end function c_attribute_text
    function c_attribute_numbers(reader, object, name, n_values, f64, i64) &
        bind(C, name="tailrace_fortran_attribute_numbers")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: object(*), name(*)
      integer(c_size_t), value :: n_values
      real(c_double), intent(inout), optional :: f64(*)
      integer(c_int64_t), intent(inout), optional :: i64(*)
      integer(c_int) :: c_attribute_numbers
    end function c_attribute_numbers
    function c_too_wide(object, name, number) bind(C, name="tailrace_fortran_too_wide")
      import
      character(kind=c_char), intent(in) :: object(*), name(*)
      integer(c_int64_t), value :: number
      integer(c_int) :: c_too_wide
    end function c_too_wide
    function c_n_steps(reader, path, n) bind(C, name="tailrace_fortran_n_steps")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), intent(out) :: n
      integer(c_int) :: c_n_steps
    end function c_n_steps
    function c_read(reader, path, step, start, count, stride, values, collective) &
        bind(C, name="tailrace_fortran_read")
      import
      type(c_ptr), value :: reader
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), value :: step
      type(*), dimension(..), intent(in), optional :: start, count, stride
      type(*), dimension(..), intent(inout) :: values
      integer(c_int), value :: collective
      integer(c_int) :: c_read
    end function c_read
    function c_error() bind(C, name="tailrace_fortran_error")
      import
      type(c_ptr) :: c_error
    end function c_error
    function c_rank(comm) bind(C, name="tailrace_fortran_rank")
      import
      integer(c_int), intent(in), optional :: comm
      integer(c_int) :: c_rank
    end function c_rank
    subroutine c_end_quietly(rank) bind(C, name="tailrace_fortran_end_quietly")
      import
      integer(c_int), value :: rank
    end subroutine c_end_quietly
    function c_length(text) bind(C, name="tailrace_fortran_length")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: c_length
    end function c_length
    function c_version() bind(C, name="tailrace_version_string")
      import
      type(c_ptr) :: c_version
    end function c_version
    function c_error_name(error) bind(C, name="tailrace_error_name")
      import
      integer(c_int), value :: error
      type(c_ptr) :: c_error_name
    end function c_error_name
  end interface

contains

  ! --- texts, options, failures

  function text_from(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: i, n
    n = int(c_length(pointer))
    allocate (character(n) :: text)
    if (n == 0) return
    call c_f_pointer(pointer, characters, [n])
    do i = 1, n
      text(i:i) = characters(i)
    end do
  end function text_from

  pure function c_text(text)
    character(*), intent(in) :: text
    character(:), allocatable :: c_text
    c_text = trim(text)//c_null_char
  end function c_text

  pure subroutine join(options, key, value)
    character(:), allocatable, intent(inout) :: options
    character(*), intent(in) :: key
    character(*), intent(in), optional :: value
    if (.not. present(value)) return
    if (len(options) > 0) options = options//','
    options = options//key//'='//trim(value)
  end subroutine join

  pure subroutine join_switch(options, key, value)
    character(:), allocatable, intent(inout) :: options
    character(*), intent(in) :: key
    logical, intent(in), optional :: value
    if (.not. present(value)) return
    if (value) then
      call join(options, key, 'on')
    else
      call join(options, key, 'off')
    end if
  end subroutine join_switch

  pure function given(options)
    character(*), intent(in), optional :: options
    character(:), allocatable :: given
    given = ''
    if (present(options)) given = trim(options)
  end function given

  !> Format a number for an option, with all of its digits. Text that is not a number is passed on,
  !! and the library rejects it by name.
  function number_text(number) result(text)
    class(*), intent(in) :: number
    character(:), allocatable :: text
    character(32) :: digits
    digits = 'no number'
    select type (number)
    type is (real(c_double))
      write (digits, '(es25.16e3)') number
    type is (real(c_float))
      write (digits, '(es25.16e3)') real(number, c_double)
    type is (integer(c_int8_t))
      write (digits, '(i0)') number
    type is (integer(c_int16_t))
      write (digits, '(i0)') number
    type is (integer(c_int32_t))
      write (digits, '(i0)') number
    type is (integer(c_int64_t))
      write (digits, '(i0)') number
    end select
    text = trim(adjustl(digits))
  end function number_text

  !> Return a failure, or stop. `rank`: of a call that fails alike on all ranks; then rank 0 speaks
  !! for all.
  subroutine judge(code, stat, errmsg, rank)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int), intent(in), optional :: rank
    character(:), allocatable :: text
    if (present(stat)) stat = code
    if (code == tailrace_ok) return
    text = text_from(c_error())
    if (present(errmsg)) errmsg = text
    if (present(stat)) return
    if (present(rank)) call c_end_quietly(rank)
    error stop 'tailrace: '//text
  end subroutine judge

  !> Return the library's version, such as "0.1.0".
  function tailrace_version() result(text)
    character(:), allocatable :: text
    text = text_from(c_version())
  end function tailrace_version

  !> Return the name of an error, such as "bad_coverage".
  function tailrace_error_name(error) result(text)
    integer, intent(in) :: error
    character(:), allocatable :: text
    text = text_from(c_error_name(int(error, c_int)))
  end function tailrace_error_name

  ! --- files

  !> Create a file. Collective over `comm`, a communicator of mpi or mpif.h (of mpi_f08: its
  !! mpi_val); without `comm` only this process. `options` is the text of tailrace.h. The other
  !! arguments are its most common keys and override it.
  subroutine file_create(file, path, comm, codec, bound, mode, replace, options, stat, errmsg)
    class(tailrace_file), intent(inout) :: file
    character(*), intent(in) :: path
    integer, intent(in), optional :: comm
    character(*), intent(in), optional :: codec, bound, mode, options
    logical, intent(in), optional :: replace
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call begin(file, path, 0, comm, codec, bound, mode, replace, options, stat, errmsg)
  end subroutine file_create

  !> Open a file to add fields and steps to it. Collective, like create().
  subroutine file_open(file, path, comm, codec, bound, mode, options, stat, errmsg)
    class(tailrace_file), intent(inout) :: file
    character(*), intent(in) :: path
    integer, intent(in), optional :: comm
    character(*), intent(in), optional :: codec, bound, mode, options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call begin(file, path, 1, comm, codec, bound, mode, options=options, stat=stat, errmsg=errmsg)
  end subroutine file_open

  subroutine begin(file, path, opens, comm, codec, bound, mode, replace, options, stat, errmsg)
    class(tailrace_file), intent(inout) :: file
    character(*), intent(in) :: path
    integer, intent(in) :: opens
    integer, intent(in), optional :: comm
    character(*), intent(in), optional :: codec, bound, mode, options
    logical, intent(in), optional :: replace
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: all
    all = given(options)
    call join(all, 'codec', codec)
    call join(all, 'bound', bound)
    call join(all, 'mode', mode)
    call join_switch(all, 'replace', replace)
    file%rank = c_rank(comm)
    call judge(c_file(c_text(path), int(opens, c_int), comm, c_text(all), file%handle), stat, errmsg, &
               file%rank)
  end subroutine begin

  !> End the open step, if any, and close the file, which is closed in every case. Collective.
  subroutine file_close(file, stat, errmsg)
    class(tailrace_file), intent(inout) :: file
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: code
    code = c_close(file%handle)
    file%handle = c_null_ptr
    call judge(code, stat, errmsg, file%rank)
  end subroutine file_close

  !> Drop everything uncommitted and close. Not collective; never fails.
  subroutine file_abandon(file)
    class(tailrace_file), intent(inout) :: file
    call c_abandon(file%handle)
    file%handle = c_null_ptr
  end subroutine file_abandon

  pure logical function file_is_open(file)
    class(tailrace_file), intent(in) :: file
    file_is_open = c_associated(file%handle)
  end function file_is_open

  !> Define a field: its path, a type (tailrace_real64, ...) and its extents over all ranks. The
  !! extents are a list of integers of any kind, first dimension first. With over_time they are
  !! those of one entry; time becomes the last dimension. `fill` is a real or an integer number.
  !! `dims` names the dimensions, in the order of `shape`, as netCDF-4 does; `time_dim` names that
  !! of time (default with `dims`: 'time'). Alike on all ranks.
  subroutine file_define(file, path, dtype, shape, field, codec, bound, chunk, fill, over_time, &
                         options, stat, errmsg, dims, time_dim)
    class(tailrace_file), intent(in) :: file
    character(*), intent(in) :: path
    integer, intent(in) :: dtype
    type(*), dimension(..), intent(in) :: shape
    type(tailrace_field), intent(out) :: field
    character(*), intent(in), optional :: codec, bound
    type(*), dimension(..), intent(in), optional :: chunk
    class(*), intent(in), optional :: fill
    logical, intent(in), optional :: over_time
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: dims(:), time_dim
    character(:), allocatable :: all, names
    integer(c_int) :: code
    integer :: d, n_names
    names = ''
    n_names = merge(0, -1, present(time_dim))
    if (present(dims)) then
      n_names = size(dims)
      do d = 1, n_names
        names = names//c_text(dims(d))
      end do
    end if
    all = given(options)
    call join(all, 'codec', codec)
    call join(all, 'bound', bound)
    call join_switch(all, 'over-time', over_time)
    if (present(fill)) call join(all, 'fill', number_text(fill))
    field%dtype = int(dtype, c_int)
    code = c_define(file%handle, c_text(path), field%dtype, shape, chunk, c_text(names), &
                    int(n_names, c_int), c_text(given(time_dim)), c_text(all), field%number, &
                    field%n_dims)
    call judge(code, stat, errmsg)
  end subroutine file_define

  !> Submit this rank's part of a field: values of the field's type, any number of times. Not
  !! collective.
  !! start   position of the first element, in each dimension from 1; absent: the origin
  !! count   extents of the part; absent: those of `values`
  !! copy    .false.: no copy; `values` is a variable or a section of one, such as u(1:nx, 1:ny), and
  !!         no expression. The caller leaves it unchanged until end_step() or close() has returned.
  !!         Default: .true.
  subroutine file_put(file, field, values, start, count, copy, stat, errmsg)
    class(tailrace_file), intent(in) :: file
    type(tailrace_field), intent(in) :: field
    type(*), dimension(..), intent(in), target :: values
    type(*), dimension(..), intent(in), optional :: start, count
    logical, intent(in), optional :: copy
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: copies
    copies = 1
    if (present(copy)) then
      if (.not. copy) copies = 0
    end if
    call judge(c_put(file%handle, field%number, field%dtype, field%n_dims, start, count, values, &
                     copies), stat, errmsg)
  end subroutine file_put

  include 'put_device.inc'
  include 'set_attributes.inc'

  !> Make end_step() fail with `why` on all ranks, because this rank cannot provide its part. Not
  !! collective.
  subroutine file_fail_step(file, why, stat, errmsg)
    class(tailrace_file), intent(in) :: file
    character(*), intent(in) :: why
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call judge(c_fail_step(file%handle, c_text(why)), stat, errmsg)
  end subroutine file_fail_step

  !> Write and commit everything put since the last step. In the modes async and in_situ hand it
  !! over, and report the previous step. Collective.
  subroutine file_end_step(file, report, stat, errmsg)
    class(tailrace_file), intent(in) :: file
    type(tailrace_report), intent(out), optional :: report
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tailrace_report) :: made
    integer(c_int) :: code
    code = c_end_step(file%handle, 0_c_int, made)
    if (present(report)) report = made
    call judge(code, stat, errmsg, file%rank)
  end subroutine file_end_step

  !> Wait until the step that was handed over last is committed. Collective.
  subroutine file_wait(file, report, stat, errmsg)
    class(tailrace_file), intent(in) :: file
    type(tailrace_report), intent(out), optional :: report
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tailrace_report) :: made
    integer(c_int) :: code
    code = c_end_step(file%handle, 1_c_int, made)
    if (present(report)) report = made
    call judge(code, stat, errmsg, file%rank)
  end subroutine file_wait

  !> Return the last step that is certainly in the file, counted from 1 by calls of end_step(); 0:
  !! none. tailrace_file_last_committed_step of tailrace.h counts from 0. Not collective.
  integer(c_int64_t) function file_last_committed_step(file)
    class(tailrace_file), intent(in) :: file
    file_last_committed_step = c_last_committed_step(file%handle) + 1
  end function file_last_committed_step

  ! --- idle time (mode in_situ): marks of when the program needs its thread and its network

  subroutine file_compute_begin(file)
    class(tailrace_file), intent(in) :: file
    call c_compute_begin(file%handle)
  end subroutine file_compute_begin

  subroutine file_compute_end(file)
    class(tailrace_file), intent(in) :: file
    call c_compute_end(file%handle)
  end subroutine file_compute_end

  subroutine file_background_begin(file)
    class(tailrace_file), intent(in) :: file
    call c_background_begin(file%handle)
  end subroutine file_background_begin

  subroutine file_background_end(file)
    class(tailrace_file), intent(in) :: file
    call c_background_end(file%handle)
  end subroutine file_background_end

  !> Lend the program's idle thread for this many seconds: Tailrace encodes the chunks that fit.
  subroutine file_idle(file, seconds)
    class(tailrace_file), intent(in) :: file
    real(c_double), intent(in) :: seconds
    call c_idle(file%handle, seconds)
  end subroutine file_idle

  !> Lend the program's idle thread until done() returns .true.; done() must not call Tailrace.
  !! Tailrace calls wait(), if present, at most once, when it does not need the thread. wait()
  !! sleeps until done() would return .true.
  subroutine file_idle_until(file, done, wait)
    class(tailrace_file), intent(in) :: file
    procedure(tailrace_done) :: done
    procedure(tailrace_wait), optional :: wait
    asked => done
    if (present(wait)) then
      sleeper => wait
      call c_idle_or_wait(file%handle, c_funloc(ask), c_funloc(sleep_on), c_null_ptr)
    else
      call c_idle_or_wait(file%handle, c_funloc(ask), c_null_funptr, c_null_ptr)
    end if
    asked => null()
    sleeper => null()
  end subroutine file_idle_until

  function ask(user) bind(C, name="tailrace_fortran_ask") result(yes)
    type(c_ptr), value :: user
    integer(c_int) :: yes
    yes = merge(1_c_int, 0_c_int, asked())
    if (c_associated(user)) yes = 1
  end function ask

  subroutine sleep_on(user) bind(C, name="tailrace_fortran_sleep")
    type(c_ptr), value :: user
    if (.not. c_associated(user)) call sleeper()
  end subroutine sleep_on

  ! --- readers

  !> Open any HDF5 or netCDF-4 file for reading. Collective over `comm`, like create(). `options` is
  !! the text of reader.h.
  subroutine reader_open(reader, path, comm, options, stat, errmsg)
    class(tailrace_reader), intent(inout) :: reader
    character(*), intent(in) :: path
    integer, intent(in), optional :: comm
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call judge(c_reader(c_text(path), comm, c_text(given(options)), reader%handle), stat, errmsg)
  end subroutine reader_open

  !> Close the reader. Collective.
  subroutine reader_close(reader, stat, errmsg)
    class(tailrace_reader), intent(inout) :: reader
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: code
    code = c_reader_close(reader%handle)
    reader%handle = c_null_ptr
    call judge(code, stat, errmsg)
  end subroutine reader_close

  !> Close the reader without the other ranks. Not collective.
  subroutine reader_abandon(reader)
    class(tailrace_reader), intent(inout) :: reader
    call c_reader_abandon(reader%handle)
    reader%handle = c_null_ptr
  end subroutine reader_abandon

  !> List the file again after it has changed. Collective.
  subroutine reader_refresh(reader, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call judge(c_refresh(reader%handle), stat, errmsg)
  end subroutine reader_refresh

  integer function reader_n_datasets(reader)
    class(tailrace_reader), intent(in) :: reader
    reader_n_datasets = int(c_n_datasets(reader%handle))
  end function reader_n_datasets

  !> Return the path of a dataset by its number, from 1 to n_datasets(); "" beyond.
  function reader_path(reader, number) result(text)
    class(tailrace_reader), intent(in) :: reader
    integer, intent(in) :: number
    character(:), allocatable :: text
    text = text_from(c_path(reader%handle, int(number, c_int64_t)))
  end function reader_path

  !> Return the extents of a dataset, first dimension first (none of a scalar), and its type
  !! (tailrace_real64, ...; 0: not numeric). Not collective.
  subroutine reader_inquire(reader, path, shape, dtype, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    character(*), intent(in) :: path
    integer(c_int64_t), allocatable, intent(out), optional :: shape(:)
    integer, intent(out), optional :: dtype
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: extents(most_dims)
    integer(c_size_t) :: dataset
    integer(c_int) :: found, n_dims, code
    found = 0
    n_dims = 0
    code = c_inquire(reader%handle, c_text(path), dataset, found, n_dims, extents)
    if (present(shape)) shape = extents(:n_dims)
    if (present(dtype)) dtype = found
    call judge(code, stat, errmsg)
  end subroutine reader_inquire

  !> Read a part of a dataset into `values`, of the dataset's type. Not collective.
  !! start    position of the first element, from 1; absent: the origin
  !! count    extents of the part; absent: those of `values`
  !! stride   distance between elements in each dimension; absent: 1
  subroutine reader_read(reader, path, values, start, count, stride, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    character(*), intent(in) :: path
    type(*), dimension(..), intent(inout) :: values
    type(*), dimension(..), intent(in), optional :: start, count, stride
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call judge(c_read(reader%handle, c_text(path), no_step, start, count, stride, values, &
                      0_c_int), stat, errmsg)
  end subroutine reader_read

  !> Read parts of one dataset on all ranks, each its own part, possibly empty. A chunk that several
  !! ranks need is fetched and decoded once. Collective.
  subroutine reader_read_all(reader, path, values, start, count, stride, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    character(*), intent(in) :: path
    type(*), dimension(..), intent(inout) :: values
    type(*), dimension(..), intent(in), optional :: start, count, stride
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call judge(c_read(reader%handle, c_text(path), no_step, start, count, stride, values, &
                      1_c_int), stat, errmsg)
  end subroutine reader_read_all

  include 'get_attributes.inc'
  include 'recover.inc'

  !> Return the number of committed steps that all fields over time have, or that the field `path`
  !! has; the last one is the step to continue from. Not collective.
  integer(c_int64_t) function reader_n_steps(reader, path, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    character(*), intent(in), optional :: path
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: n
    integer(c_int) :: code
    code = c_n_steps(reader%handle, c_text(given(path)), n)
    reader_n_steps = n
    call judge(code, stat, errmsg)
  end function reader_n_steps

  !> Read parts of one step of a field over time on all ranks, each its own part, possibly empty.
  !! Collective.
  !! step          from 1 to n_steps()
  !! start, count  as in read(), without time
  subroutine reader_read_step(reader, path, step, values, start, count, stat, errmsg)
    class(tailrace_reader), intent(in) :: reader
    character(*), intent(in) :: path
    class(*), intent(in) :: step
    type(*), dimension(..), intent(inout) :: values
    type(*), dimension(..), intent(in), optional :: start, count
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: number
    number = 0  ! No step has this number.
    select type (step)
    type is (integer(c_int8_t))
      number = step
    type is (integer(c_int16_t))
      number = step
    type is (integer(c_int32_t))
      number = step
    type is (integer(c_int64_t))
      number = max(step, no_step + 1)
    end select
    call judge(c_read(reader%handle, c_text(path), number, start, count, values=values, &
                      collective=1_c_int), stat, errmsg)
  end subroutine reader_read_step

end module tailrace
