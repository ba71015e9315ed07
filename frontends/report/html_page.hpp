// What the HTML pages of reports are made of: their head and look, facts, tables. One file each,
// which needs nothing from elsewhere and runs no script; light, and readable in print.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailrace::report {

/// Text as it stands between tags or in an attribute, made printable.
std::string html_escaped(std::string_view text);
/// All up to the first word below the heading `title`.
std::string html_head(std::string_view title);
/// A row of a list of facts, which stands in <dl>.
std::string html_fact(std::string_view name, std::string_view text);
/// The first column stands to the left, the others to the right.
std::string html_table(std::string_view caption, const std::vector<std::string>& heads,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace tailrace::report
