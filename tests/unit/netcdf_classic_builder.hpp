// Builds netCDF classic files byte by byte, by the grammar of the format specification.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "input_support.hpp"

namespace tailrace::test {

/// One variable. Its attributes are already encoded (see ClassicFile::attribute).
struct ClassicVariable {
  std::string name;
  std::vector<std::uint64_t> dimension_ids;
  std::vector<std::string> attributes;
  std::uint32_t type = 5;
  std::uint64_t vsize = 0;  ///< Redundant in the format; readers compute the size.
  std::string values;       ///< Values of a record variable: one record, padded by the test.
};

class ClassicFile {
 public:
  explicit ClassicFile(int version) : version_(version) {}

  std::vector<std::pair<std::string, std::uint64_t>> dimensions;  ///< Length 0: records.
  std::vector<std::string> attributes;
  std::vector<ClassicVariable> variables;  ///< Fixed variables first, then record variables.
  std::uint64_t n_records = 0;
  bool streaming = false;  ///< Write -1 for the number of records.

  std::string count(std::uint64_t n) const {
    return version_ == 5 ? big_endian(n) : big_endian(static_cast<std::uint32_t>(n));
  }
  static std::string padded(std::string bytes) {
    bytes.resize((bytes.size() + 3) / 4 * 4, '\0');
    return bytes;
  }
  std::string name(const std::string& text) const { return count(text.size()) + padded(text); }
  std::string attribute(const std::string& attribute_name, std::uint32_t type, std::uint64_t n,
                        const std::string& values) const {
    return name(attribute_name) + big_endian(type) + count(n) + padded(values);
  }
  std::string text_attribute(const std::string& attribute_name, const std::string& text) const {
    return attribute(attribute_name, 2, text.size(), text);
  }

  std::string header(const std::vector<std::uint64_t>& addresses) const {
    std::string bytes = "CDF" + std::string(1, static_cast<char>(version_));
    bytes += count(streaming ? UINT64_MAX : n_records);
    bytes += list(10, dimensions.size());
    for (const auto& [dimension_name, length] : dimensions) {
      bytes += name(dimension_name) + count(length);
    }
    bytes += list(12, attributes.size());
    for (const std::string& entry : attributes) bytes += entry;
    bytes += list(11, variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const ClassicVariable& variable = variables[i];
      bytes += name(variable.name) + count(variable.dimension_ids.size());
      for (const std::uint64_t id : variable.dimension_ids) bytes += count(id);
      bytes += list(12, variable.attributes.size());
      for (const std::string& entry : variable.attributes) bytes += entry;
      bytes += big_endian(variable.type) + count(variable.vsize);
      bytes += version_ == 1 ? big_endian(static_cast<std::uint32_t>(addresses[i]))
                             : big_endian(addresses[i]);
    }
    return bytes;
  }

  std::size_t header_bytes() const {
    return header(std::vector<std::uint64_t>(variables.size())).size();
  }

  /// Header, fixed variables, then n_records times the values of the record variables. Records
  /// differ only in their first byte, which counts them.
  std::string build() const {
    std::vector<std::uint64_t> addresses;
    std::string data;
    std::string record;
    const std::size_t start = header_bytes();
    std::uint64_t record_start = start;
    for (const ClassicVariable& variable : variables) {
      if (!is_record(variable)) record_start += padded(variable.values).size();
    }
    for (const ClassicVariable& variable : variables) {
      std::string& part = is_record(variable) ? record : data;
      addresses.push_back((is_record(variable) ? record_start : start) + part.size());
      part += is_record(variable) ? variable.values : padded(variable.values);
    }
    std::string bytes = header(addresses) + data;
    for (std::uint64_t i = 0; i < n_records; ++i) {
      bytes += record;
      bytes[bytes.size() - record.size()] = static_cast<char>(i);
    }
    return bytes;
  }

 private:
  std::string list(std::uint32_t tag, std::size_t n) const {
    return big_endian(n == 0 ? 0 : tag) + count(n);
  }
  bool is_record(const ClassicVariable& variable) const {
    return !variable.dimension_ids.empty() && dimensions.at(variable.dimension_ids[0]).second == 0;
  }

  int version_;
};

}  // namespace tailrace::test
