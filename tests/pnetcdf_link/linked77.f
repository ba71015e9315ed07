C     Counterpart of linked.c that uses the Fortran 77 interface.
      program linked77
      implicit none
      include 'mpif.h'
      include 'pnetcdf.inc'
      integer rows, columns
      parameter (rows = 8, columns = 1000)
      integer rank, ranks, err, file, id, dims(2), i, j, failed, loaded
      integer*8 start(2), counts(2)
      real values(columns, rows), again(columns, rows)
      character*200 path
      character*1000 line
      failed = 0
      loaded = 0
      call getarg(1, path)
      call MPI_Init(err)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
      do i = 1, rows
        do j = 1, columns
          values(j, i) = rank * rows + i - 1 + 0.001 * (j - 1)
        enddo
      enddo
      call expect(nfmpi_create(MPI_COMM_WORLD, path, NF_CLOBBER,
     +  MPI_INFO_NULL, file), failed)
      counts(1) = columns
      counts(2) = rows * ranks
      call expect(nfmpi_def_dim(file, 'x', counts(1), dims(1)), failed)
      call expect(nfmpi_def_dim(file, 'y', counts(2), dims(2)), failed)
      call expect(nfmpi_def_var(file, 'temp', NF_REAL, 2, dims, id),
     +  failed)
      counts(1) = 1
      call expect(nfmpi_put_att_text(file, id, 'units', counts(1),
     +  'K'), failed)
      call expect(nfmpi_enddef(file), failed)
      start(1) = 1
      start(2) = rank * rows + 1
      counts(1) = columns
      counts(2) = rows
      call expect(nfmpi_put_vara_real_all(file, id, start, counts,
     +  values), failed)
      call expect(nfmpi_close(file), failed)
      call expect(nfmpi_open(MPI_COMM_WORLD, path, NF_NOWRITE,
     +  MPI_INFO_NULL, file), failed)
      call expect(nfmpi_inq_varid(file, 'temp', id), failed)
      call expect(nfmpi_get_vara_real_all(file, id, start, counts,
     +  again), failed)
      call expect(nfmpi_close(file), failed)
      do i = 1, rows
        do j = 1, columns
          if (values(j, i) .ne. again(j, i)) failed = failed + 1
        enddo
      enddo
      open(10, file = '/proc/self/maps', status = 'old')
   10 read(10, '(a)', end = 20) line
      if (index(line, '/libpnetcdf') .gt. 0) loaded = loaded + 1
      goto 10
   20 close(10)
      print '(a,i0,a,i0,a,i0,a,i0)', 'rank ', rank, ' of ', ranks,
     +  ': ', failed, ' failures, real library: ', loaded
      call MPI_Finalize(err)
      if (failed .ne. 0) stop 1
      end

      subroutine expect(status, failed)
      integer status, failed
      if (status .ne. 0) failed = failed + 1
      end
