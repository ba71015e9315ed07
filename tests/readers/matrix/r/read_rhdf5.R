# rhdf5 of Bioconductor.

source(file.path(Sys.getenv("READER_MATRIX_SCRIPTS"), "dataset_lines.R"))
suppressPackageStartupMessages(library(rhdf5))

attributes_of <- function(path, name) {
  found <- h5readAttributes(path, name, bit64conversion = "double")
  lapply(found[wanted(names(found))], plain)
}

walk <- function(path) {
  on.exit(h5closeAll())
  say_dataset(path, "/", function() list(attributes = attributes_of(path, "/")))
  listed <- h5ls(path)
  for (i in which(listed$otype == "H5I_DATASET")) {
    name <- sub("^/", "", paste0(sub("/$", "", listed$group[i]), "/", listed$name[i]))
    say_dataset(path, name, function() {
      values <- h5read(path, name, bit64conversion = "double")
      scalar <- listed$dim[i] == "( 0 )" || listed$dim[i] == ""
      shape <- if (scalar) list() else as.list(rev(dim(values)))
      c(checksum(shape, values), list(attributes = attributes_of(path, name)))
    })
  }
}

read_files(as.character(packageVersion("rhdf5")), walk)
