// Tables on standard output: aligned columns, two blanks between them, a bold line of headings.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace candor::cli {

class Table {
 public:
  /// A heading that starts with '>' is of a column of numbers, which is aligned to the right.
  explicit Table(std::vector<std::string> headings);

  void add(std::vector<std::string> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// The headings' line and one for each row. Columns in which every row is empty are left out.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Writes lines() to standard output.
  void print() const;

 private:
  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace candor::cli
