! Counterpart of linked.c that uses the Fortran 90 module.
program linked90
  use mpi
  use pnetcdf
  implicit none
  integer, parameter :: rows = 8, columns = 1000
  integer :: rank, ranks, err, file, id, dims(2), i, j, unit, failed = 0, loaded = 0
  integer(MPI_OFFSET_KIND) :: start(2), counts(2)
  real :: values(columns, rows), again(columns, rows)
  character(len=200) :: path
  character(len=1000) :: line
  call get_command_argument(1, path)
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
  do i = 1, rows
    do j = 1, columns
      values(j, i) = rank * rows + i - 1 + 0.001 * (j - 1)
    end do
  end do
  call expect(nf90mpi_create(MPI_COMM_WORLD, trim(path), NF90_CLOBBER, MPI_INFO_NULL, file))
  counts = [columns, rows * ranks]
  call expect(nf90mpi_def_dim(file, 'x', counts(1), dims(1)))
  call expect(nf90mpi_def_dim(file, 'y', counts(2), dims(2)))
  call expect(nf90mpi_def_var(file, 'temp', NF90_FLOAT, dims, id))
  call expect(nf90mpi_put_att(file, id, 'units', 'K'))
  call expect(nf90mpi_enddef(file))
  start = [1, rank * rows + 1]
  counts = [columns, rows]
  call expect(nf90mpi_put_var_all(file, id, values, start, counts))
  call expect(nf90mpi_close(file))
  call expect(nf90mpi_open(MPI_COMM_WORLD, trim(path), NF90_NOWRITE, MPI_INFO_NULL, file))
  call expect(nf90mpi_inq_varid(file, 'temp', id))
  call expect(nf90mpi_get_var_all(file, id, again, start, counts))
  call expect(nf90mpi_close(file))
  if (any(values /= again)) failed = failed + 1
  open(newunit=unit, file='/proc/self/maps', action='read')
  do
    read(unit, '(a)', iostat=err) line
    if (err /= 0) exit
    if (index(line, '/libpnetcdf') > 0) loaded = loaded + 1
  end do
  print '(a,i0,a,i0,a,i0,a,i0)', 'rank ', rank, ' of ', ranks, ': ', failed, &
    ' failures, real library: ', loaded
  call MPI_Finalize(err)
  if (failed /= 0) stop 1
contains
  subroutine expect(status)
    integer, intent(in) :: status
    if (status == NF90_NOERR) return
    print '(a)', trim(nf90mpi_strerror(status))
    failed = failed + 1
  end subroutine expect
end program linked90
