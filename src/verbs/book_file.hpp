// Books in files: "trz,book=FILE" on the command line.
//
// The codec knows a shared book by its words (trz/client_data.hpp) and opens no files; here a
// file's name takes their place. `tailrace-lab train-book` writes such files: the bytes of
// trz::Book::serialize(), as trz_trainer_book and tailrace.train_book give them too.

#pragma once

#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// Put the words of the book into `settings` wherever their key book names a file; words stay, and
/// so do the settings of codecs that have no books. Not collective: every rank reads the file.
/// @error not_found, io_error  the file cannot be read.  @error invalid_argument  it is no book.
Status load_book(std::string_view codec, std::vector<KeyValue>& settings);

}  // namespace tailrace::verbs
