#!/usr/bin/env bash
# symbols.sh NM ISA OBJECT…: fails if an object compiled for one instruction set defines a symbol that another
# object may be linked to and that is not in the set's own namespace: a shared inline function or template instance
# could replace the copy that processors without the set must run (see simd.h).
set -euo pipefail
nm=$1 isa=$2
shift 2
namespace=candor::cpu::$isa
mangled=3cpu${#isa}$isa  # for the names that c++filt gives up on
# Lower-case letters are local to their object; weak ones are not.
shared=$("$nm" --demangle --defined-only "$@" | sed -nE 's/^[0-9a-f]+ [A-Zuvw] //p')
if [[ -z $shared ]]; then
  echo "no symbols found; are these the objects of $namespace?"
  exit 1
fi
if outside=$(grep -vF -e "$namespace::" -e "$mangled" <<<"$shared"); then
  echo "defined for every instruction set by objects of one, outside $namespace:"
  sort -u <<<"$outside"
  exit 1
fi
echo "$(wc -l <<<"$shared") symbols, all in $namespace"
