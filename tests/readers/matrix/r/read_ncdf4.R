# ncdf4 of CRAN, on the system's netCDF-C.

source(file.path(Sys.getenv("READER_MATRIX_SCRIPTS"), "dataset_lines.R"))
suppressPackageStartupMessages(library(ncdf4))

attributes_of <- function(file, name) {
  found <- ncatt_get(file, name)
  lapply(found[wanted(names(found))], plain)
}

read <- function(file, name, dims) {
  values <- ncvar_get(file, name, collapse_degen = FALSE, raw_datavals = TRUE)
  c(checksum(as.list(rev(dims)), values), list(attributes = attributes_of(file, name)))
}

walk <- function(path) {
  file <- nc_open(path, readunlim = FALSE)
  on.exit(nc_close(file))
  say_dataset(path, "/", function() list(attributes = attributes_of(file, 0)))
  for (variable in file$var) {
    say_dataset(path, variable$name, function() read(file, variable$name, variable$varsize))
  }
  for (dimension in file$dim) {
    if (dimension$dimvarid$id >= 0) {
      say_dataset(path, dimension$name, function() read(file, dimension$name, dimension$len))
    }
  }
}

read_files(as.character(packageVersion("ncdf4")), walk)
