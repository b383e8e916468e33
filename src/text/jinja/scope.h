// Where each variable lives. Jinja2 compiles a template to Python functions in which every scope has its own copy of
// the variables it sets, filled when the scope is entered; what a template can observe of that (a set inside a loop
// ends with the iteration, a macro sees later sets of the scope around it, a name that is set somewhere hides the
// context's) is reproduced here, statically. This pass also finds filters and tests, and refuses what Jinja2 refuses to
// compile.
#pragma once

#include <string>

#include "text/jinja/ast.h"

namespace candor::jinja {

/// Fills in variables, scopes, filters, tests and escaping of a parsed template. Throws Error(text) with the line.
void resolve(Template& tree, const std::string& label);

}  // namespace candor::jinja
