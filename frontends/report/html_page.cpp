// HTML tags and the style sheet.

#include "html_page.hpp"

#include <fmt/format.h>

#include "trz/base/printable.hpp"

namespace tailrace::report {
namespace {

constexpr const char* kPageStyle =
    R"(<style>
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
p.note, caption, footer { color: #5a6775; font-size: .9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; }
dt { color: #5a6775; } dd { margin: 0; }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e3e8ed; }
th:first-child, td:first-child { text-align: left; }
td { white-space: nowrap; }
thead th { border-bottom: 2px solid #b8c2cc; }
</style>)";

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(std::string(text))) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html_fact(std::string_view name, std::string_view text) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_escaped(name), html_escaped(text));
}

std::string html_table(std::string_view caption, const std::vector<std::string>& heads,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string out = fmt::format("<div class=\"wide\"><table><caption>{}</caption><thead><tr>",
                                html_escaped(caption));
  for (const std::string& one : heads) out += "<th>" + html_escaped(one) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + html_escaped(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_head(std::string_view title) {
  const std::string text = html_escaped(title);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         text + "</title>\n" + kPageStyle + "</head><body>\n<h1>" + text + "</h1>\n";
}

}  // namespace tailrace::report
