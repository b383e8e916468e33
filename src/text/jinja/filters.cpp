#include "text/jinja/filters.h"

#include <algorithm>

#include "text/jinja/filter_tables.h"

namespace candor::jinja {

const FilterEntry* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), html_filters(), number_filters(), sequence_filters(), order_filters(),
                           selection_filters(), value_filters()}) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const FilterEntry& entry) { return entry.name == name; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

}  // namespace candor::jinja
