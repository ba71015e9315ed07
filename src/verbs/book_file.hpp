// Books in files: "trz,book=FILE" on the command line.
//
// The codec opens no files; its setting book= contains the words of a shared book
// (trz/client_data.hpp). On the command line a file name may take their place. `tailrace
// train-book` writes such files. They contain the bytes of trz::Book::serialize(), which
// trz_trainer_book and tailrace.train_book also return.

#pragma once

#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// Replace file names under the key book in `settings` by the words of the book. Words and the
/// settings of codecs without books remain unchanged. Not collective: every rank reads the file.
/// @error not_found, io_error  the file cannot be read.  @error invalid_argument  it is not a book.
Status load_book(std::string_view codec, std::vector<KeyValue>& settings);

}  // namespace tailrace::verbs
