// The filters of each file, for the table of all.
#pragma once

#include <span>

#include "text/jinja/filters.h"

namespace candor::jinja {

[[nodiscard]] std::span<const FilterEntry> text_filters();
[[nodiscard]] std::span<const FilterEntry> html_filters();
[[nodiscard]] std::span<const FilterEntry> number_filters();
[[nodiscard]] std::span<const FilterEntry> sequence_filters();
[[nodiscard]] std::span<const FilterEntry> order_filters();
[[nodiscard]] std::span<const FilterEntry> selection_filters();
[[nodiscard]] std::span<const FilterEntry> value_filters();

}  // namespace candor::jinja
