# Output of the readers in R: see dataset_lines.py.

wanted <- function(names) grep("^(title|units|a[0-9][0-9])$", names, value = TRUE)

text_of <- function(values) paste(gsub("\\s+$", "", as.vector(values)), collapse = "|")

# R reverses the dimensions, so that its values are in the order of C.
checksum <- function(shape, values) {
  if (is.factor(values)) values <- as.character(values)  # Names of an enumeration.
  if (is.character(values)) return(list(shape = shape, text = text_of(values)))
  flat <- as.double(as.vector(values))
  list(shape = shape, sum = sum(flat), weighted = sum(flat * seq_along(flat)))
}

plain <- function(value) {
  if (is.character(value)) text_of(value) else as.list(as.double(as.vector(value)))
}

say <- function(...) {
  cat(jsonlite::toJSON(list(...), auto_unbox = TRUE, digits = I(17)), "\n", sep = "")
}

# The line of a dataset; `read` returns its facts as a list.
say_dataset <- function(file, name, read) {
  facts <- tryCatch(suppressWarnings(read()),
                    error = function(error) list(error = conditionMessage(error)))
  do.call(say, c(list(file = file, name = name), facts))
}

read_files <- function(version, walk) {
  paths <- commandArgs(trailingOnly = TRUE)
  if (paths[1] == "--version") return(cat(version, "\n", sep = ""))
  for (path in paths) {
    tryCatch(walk(path), error = function(error) {
      say(file = path, name = "", error = conditionMessage(error))
    })
    say(file = path, end = TRUE)
  }
}
