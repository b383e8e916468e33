#include "text/jinja/binding.h"

#include <algorithm>

#include "text/jinja/operators.h"

namespace candor::jinja {

bool Bound::truth(std::size_t i, bool fallback) const {
  return has(i) ? jinja::truth(runtime_, values_[i]) : fallback;
}

Int Bound::integer(std::size_t i, Int fallback) const {
  if (!has(i)) return fallback;
  require_defined(runtime_, values_[i]);
  if (!values_[i].is_integral()) runtime_.fail("{}: '{}' object is not an integer", function_, type_name(values_[i]));
  return values_[i].integral();
}

std::string_view Bound::text(std::size_t i, std::string_view fallback) const {
  if (!has(i)) return fallback;
  require_defined(runtime_, values_[i]);
  if (!values_[i].is_text()) runtime_.fail("{}: expected a string, got '{}'", function_, type_name(values_[i]));
  return values_[i].view();
}

Bound bind(Runtime& runtime, const Arguments& arguments, std::string_view function,
           std::initializer_list<std::string_view> parameters, std::size_t required, Naming naming) {
  Bound bound(runtime, function);
  if (arguments.positional.size() > parameters.size())
    runtime.fail("{} takes at most {} arguments, got {}", function, parameters.size(), arguments.positional.size());
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) bound.slot(i) = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    if (naming == Naming::positional_only) runtime.fail("{} takes no keyword arguments", function);
    const auto* const found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) runtime.fail("{} has no parameter '{}'", function, printable(name));
    const auto i = static_cast<std::size_t>(found - parameters.begin());
    if (bound.has(i)) runtime.fail("{} got several values for '{}'", function, printable(name));
    bound.slot(i) = value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!bound.has(i)) runtime.fail("{} misses the argument '{}'", function, *(parameters.begin() + i));
  return bound;
}

}  // namespace candor::jinja
