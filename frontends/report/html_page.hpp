// Parts of the HTML pages of reports: head and style, facts, tables. A page is one file: it loads
// nothing and runs no script. Its colours are light, so that it also prints well.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailrace::report {

/// `text` escaped for HTML, between tags or in an attribute; control characters are made printable.
std::string html_escaped(std::string_view text);
/// Start of the page, up to the first text below the heading `title`.
std::string html_head(std::string_view title);
/// Row of a list of facts, to be placed in <dl>.
std::string html_fact(std::string_view name, std::string_view text);
/// Table whose first column is aligned left, the others right.
std::string html_table(std::string_view caption, const std::vector<std::string>& heads,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace tailrace::report
