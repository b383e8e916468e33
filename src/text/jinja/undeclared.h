// Whether a body uses one of the names that Jinja2 gives a meaning only where they are used: loop, caller, varargs,
// kwargs, self, super.
#pragma once

#include <initializer_list>
#include <set>
#include <string_view>

#include "text/jinja/ast.h"

namespace candor::jinja {

/// Those of `names` that `body` reads before it sets them, in document order and in all inner scopes but blocks.
[[nodiscard]] std::set<std::string_view> find_undeclared(Body& body, std::initializer_list<std::string_view> names);

/// True if `body` has a scoped block, which may use everything around it.
[[nodiscard]] bool has_scoped_block(const Body& body);

}  // namespace candor::jinja
