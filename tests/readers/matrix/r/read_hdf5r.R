# hdf5r of CRAN.

source(file.path(Sys.getenv("READER_MATRIX_SCRIPTS"), "dataset_lines.R"))
suppressPackageStartupMessages(library(hdf5r))

attributes_of <- function(item) {
  found <- h5attr_names(item)
  lapply(setNames(nm = wanted(found)), function(each) plain(h5attr(item, each)))
}

walk <- function(path) {
  file <- H5File$new(path, mode = "r")
  on.exit(file$close_all())
  say_dataset(path, "/", function() list(attributes = attributes_of(file)))
  listed <- file$ls(recursive = TRUE)
  for (name in listed$name[listed$obj_type == "H5I_DATASET"]) {
    say_dataset(path, name, function() {
      item <- file[[name]]
      scalar <- item$get_space()$get_simple_extent_type() == "H5S_SCALAR"
      values <- item$read()
      if (bit64::is.integer64(values)) values <- as.double(values)
      shape <- if (scalar) list() else as.list(rev(item$dims))
      c(checksum(shape, values), list(attributes = attributes_of(item)))
    })
  }
}

read_files(as.character(packageVersion("hdf5r")), walk)
