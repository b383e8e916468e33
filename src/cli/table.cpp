#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "cli/output.h"

namespace candor::cli {
namespace {

/// Characters of a UTF-8 text.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> row) {
  row.resize(headings_.size());
  for (std::string& cell : row) cell = without_controls(cell);
  rows_.push_back(std::move(row));
}

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths(headings_.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (widths[i] > 0) widths[i] = std::max(widths[i], width(headings_[i]));
  std::vector<std::string> out{line(headings_, widths)};
  for (const auto& row : rows_) out.push_back(line(row, widths));
  return out;
}

void Table::print() const {
  bool heading = true;
  for (const std::string& text : lines()) cli::print((std::exchange(heading, false) ? bold(text) : text) + "\n");
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string out;
  std::size_t blanks = 0;  // owed before the next cell; none at the end of a line
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::size_t padding = widths[i] - std::min(widths[i], width(cells[i]));
    if (right_[i]) blanks += padding;
    if (!cells[i].empty()) {
      out.append(blanks, ' ');
      out += cells[i];
      blanks = 0;
    }
    blanks += right_[i] ? 2 : padding + 2;
  }
  return out;
}

}  // namespace candor::cli
