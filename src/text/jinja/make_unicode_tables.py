#!/usr/bin/env python3
"""Writes unicode_tables.cpp: what the str of Python knows of Unicode and libutf8proc does not tell."""

import os
import subprocess
import unicodedata

SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = [chr(c) for c in range(0x110000) if c not in SURROGATES]


def ranges(belongs):
    found, start, previous = [], None, None
    for c in map(ord, filter(belongs, CODE_POINTS)):
        if start is not None and c == previous + 1:
            previous = c
            continue
        if start is not None:
            found.append((start, previous))
        start = previous = c
    if start is not None:
        found.append((start, previous))
    return found


def range_table(name, belongs):
    rows = ", ".join(f"{{{a:#x}, {b:#x}}}" for a, b in ranges(belongs))
    return f"static constexpr CodePointRange {name}Table[] = {{{rows}}};\nconst std::span<const CodePointRange> {name}({name}Table);\n"


def mapping_table(name, convert):
    rows = []
    for c in CODE_POINTS:
        mapped = convert(c)
        if len(mapped) > 1:
            points = ", ".join(f"{ord(m):#x}" for m in mapped)
            rows.append(f"{{{ord(c):#x}, {{{points}}}}}")
    return f"static constexpr FullMapping {name}Table[] = {{{', '.join(rows)}}};\nconst std::span<const FullMapping> {name}({name}Table);\n"


category = unicodedata.category
text = f"""// Written by make_unicode_tables.py from Unicode {unicodedata.unidata_version}.
#include "text/jinja/unicode_tables.h"

namespace candor::jinja {{

{range_table("kOtherLowercase", lambda c: c.islower() and category(c) != "Ll")}
{range_table("kOtherUppercase", lambda c: c.isupper() and category(c) != "Lu")}
{range_table("kDigits", lambda c: c.isdigit() and not c.isdecimal())}
{range_table("kNumericLetters", lambda c: c.isnumeric() and category(c)[0] != "N")}
{mapping_table("kFullUpper", str.upper)}
{mapping_table("kFullTitle", str.title)}
}}  // namespace candor::jinja
"""

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unicode_tables.cpp")
with open(path, "w", encoding="utf-8") as file:
    file.write(text)
subprocess.run(["clang-format", "-i", path], check=True)
