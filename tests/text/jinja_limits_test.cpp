// Hostile templates: each ends with an error that says why, in bounded time and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "text/chat_template.h"

namespace candor {
namespace {

using testing::HasSubstr;

std::string times(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

/// The error that rendering ends with; empty if it ends well.
std::string failure(const std::string& source, const Json& context = Json::object()) {
  try {
    (void)ChatTemplate(source, "hostile").render(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::text);
    return error.what();
  }
  return {};
}

constexpr const char* kMemory = "bytes of memory";
constexpr const char* kSteps = "steps";

struct Hostile {
  const char* source;
  const char* reason;
};

class HostileTemplate : public testing::TestWithParam<Hostile> {};

/// Sanitizers and busy machines slow rendering down; the promise of a second is for a release build.
constexpr std::chrono::seconds kPatience{20};

TEST_P(HostileTemplate, EndsWithAnError) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(failure(GetParam().source), HasSubstr(GetParam().reason)) << GetParam().source;
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience) << GetParam().source;
}

INSTANTIATE_TEST_SUITE_P(
    Memory, HostileTemplate,
    testing::Values(
        Hostile{"{{ 'a' * 10**9 }}", kMemory}, Hostile{"{{ 10**9 * 'ab' }}", kMemory},
        Hostile{"{{ 'a' * 10**30 }}", kMemory}, Hostile{"{{ [0] * 10**9 }}", kMemory},
        Hostile{"{{ ([[0] * 1000] * 1000) * 1000000 }}", kMemory}, Hostile{"{{ (1, 2) * 10**12 }}", kMemory},
        Hostile{"{{ 'a'.center(10**9) }}", kMemory}, Hostile{"{{ 'a'.zfill(10**9) }}", kMemory},
        Hostile{"{{ 'a'|center(10**9) }}", kMemory}, Hostile{"{{ '%1000000000d' % 1 }}", kMemory},
        Hostile{"{{ '%*d' % (10**9, 1) }}", kMemory}, Hostile{"{{ '%.1000000000d' % 1 }}", kMemory},
        Hostile{"{{ '{:1000000000}'.format(1) }}", kMemory}, Hostile{"{{ '{:01000000000,}'.format(1) }}", kMemory},
        Hostile{"{{ 'a\tb'.expandtabs(10**9) }}", kMemory}, Hostile{"{{ 'a\nb'|indent(10**9) }}", kMemory},
        Hostile{"{{ [1]|batch(10**9, 0)|list }}", kMemory},
        Hostile{"{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
                kMemory},
        Hostile{"{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s|replace('', ns.s) %}{% "
                "endfor %}",
                kMemory},
        Hostile{"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
                kMemory},
        Hostile{"{% for i in range(100000) %}{{ 'abcdefghij' * 1000 }}{% endfor %}", kMemory},
        Hostile{"{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}", kMemory},
        Hostile{"{% set x = ',' * 5000000 %}{{ x.split(',')|length }}", kMemory},
        Hostile{"{% set x = '\n' * 5000000 %}{{ x.splitlines()|length }}", kMemory},
        Hostile{"{% for i in range(100000) %}{% for j in range(20) %}{% set x = [1]|map('string') %}{% endfor %}{% "
                "endfor %}",
                kMemory},
        Hostile{"{% set d = dict(range(1000)|map('string')|batch(2)|list) %}{% for i in range(100000) %}"
                "{% set x = namespace(d) %}{% endfor %}",
                kMemory},
        Hostile{"{% for i in range(10000) %}{% set x = cycler(*range(100000)) %}{% endfor %}", kMemory},
        Hostile{"{% set x = 'a' * 1000000 %}{{ x.join(x) }}", kMemory}));

INSTANTIATE_TEST_SUITE_P(
    Steps, HostileTemplate,
    testing::Values(
        Hostile{"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", kSteps},
        Hostile{"{% for i in range(100000) %}{{ range(100000)|sum }}{% endfor %}", kSteps},
        Hostile{"{% set l = range(100000)|list %}{% for i in l %}{{ l == l[:] }}{% endfor %}", kSteps},
        Hostile{"{% set l = range(100000)|list %}{% for i in l %}{{ -1 in l }}{% endfor %}", kSteps},
        Hostile{"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in s }}{% endfor %}", kSteps},
        Hostile{"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set c = s[999999] %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{% set c = s|upper %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'éß' * 1000000 %}{% for i in range(100000) %}{% set c = s.title() %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set c = s.isalpha() %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set c = s.split() %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set c = s|wordcount %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set c = s|tojson %}{% endfor %}", kSteps},
        Hostile{"{% set s = 'a' * 1000000 %}{% set n = 'a' * 1000 + 'b' %}"
                "{% for i in range(100000) %}{% set c = s.find(n) %}{% endfor %}",
                kSteps},
        Hostile{"{% set s = 'a' * 1000000 %}{% set n = 'b' + 'a' * 1000 %}"
                "{% for i in range(100000) %}{% set c = s.rfind(n) %}{% endfor %}",
                kSteps},
        Hostile{"{% set s = '<' * 100000 %}{% for i in range(100000) %}{% set c = s|e %}{% endfor %}", kSteps},
        Hostile{"{% set l = range(100000)|list %}{% for i in l %}{% set x = l|sort %}{% endfor %}", kSteps},
        Hostile{"{% macro t(x, n) %}{% if n %}{{ t((x, x), n - 1) }}{% else %}{{ {x: 1}[x] }}{% endif %}{% endmacro %}"
                "{{ t((1,), 60) }}",
                kSteps}));

INSTANTIATE_TEST_SUITE_P(
    Depth, HostileTemplate,
    testing::Values(
        Hostile{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels"},
        Hostile{"{% macro m(x) %}{{ caller() }}{% call m(x) %}{% endcall %}{% endmacro %}{% call m(1) %}{% endcall %}",
                "levels"},
        Hostile{"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "levels"},
        Hostile{"{% block b %}{{ self.b() }}{% endblock %}", "levels"},
        Hostile{"{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}",
                "levels"},
        Hostile{"{% set ns = namespace(l={}) %}{% for i in range(100000) %}{% set ns.l = {1: ns.l} %}{% endfor %}",
                "levels"},
        Hostile{
            "{% set ns = namespace(g=[1]) %}{% for i in range(10000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}"
            "{{ ns.g|list }}",
            "levels"},
        Hostile{"{% set ns = namespace() %}{% for i in range(2000) %}{% set ns.n = namespace(n=ns.n) %}{% endfor %}{{ "
                "ns }}",
                "levels"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, HostileTemplate,
    testing::Values(Hostile{"{{ range(10**9) }}", "range too big"},
                    Hostile{"{{ range(0 - 10**20, 10**20) }}", "range too big"}, Hostile{"{{ 2 ** 127 }}", "127 bits"},
                    Hostile{"{{ 10 ** 10 ** 10 }}", "127 bits"}, Hostile{"{{ 2 ** 100 * 2 ** 100 }}", "127 bits"},
                    Hostile{"{{ 170141183460469231731687303715884105727 + 1 }}", "127 bits"},
                    Hostile{"{{ -170141183460469231731687303715884105727 - 2 }}", "127 bits"},
                    Hostile{"{{ 170141183460469231731687303715884105728 }}", "127 bits"},
                    Hostile{"{{ ('1' * 100)|int }}", "127 bits"}, Hostile{"{{ 1e300 | int }}", "127 bits"},
                    Hostile{"{{ '%.1000000000f' % 1 }}", "digits"},
                    Hostile{"{{ '{:.999999f}'.format(1.5) }}", "digits"},
                    Hostile{"{{ strftime_now('%1000000Y') }}", "too long"}));

TEST(JinjaLimits, DeeplyNestedSourcesAreRefused) {
  const int n = 5'000;
  for (const std::string& source :
       {"{{ " + times("(", n) + "1" + times(")", n) + " }}", "{{ " + times("[", n) + times("]", n) + " }}",
        "{{ " + times("{1:", n) + "1" + times("}", n) + " }}", "{{ " + times("not ", n) + "1 }}",
        "{{ " + times("-", n) + "1 }}", "{{ 1" + times(" + 1", n) + " }}", "{{ 1" + times("|abs", n) + " }}",
        "{{ a" + times(".a", n) + " }}", "{{ a" + times("[0]", n) + " }}", "{{ a" + times("()", n) + " }}",
        "{{ " + times("1 if 1 else ", n) + "1 }}", "{{ " + times("f(", n) + times(")", n) + " }}",
        times("{% if 1 %}", n) + times("{% endif %}", n), times("{% for i in [1] %}", n) + times("{% endfor %}", n),
        times("{% macro m() %}", n) + times("{% endmacro %}", n),
        "{% set " + times("(", n) + "a" + times(")", n) + " = 1 %}",
        "{{ 'a' is " + times("eq (", n) + "1" + times(")", n) + " }}"})
    EXPECT_THAT(failure(source), HasSubstr("levels")) << source.substr(0, 40);
}

TEST(JinjaLimits, LongSourcesOfAllKindsAreReadInTime) {
  // As long as a template may be, of what could be slow to read.
  const auto start = std::chrono::steady_clock::now();
  const auto fill = [](const std::string& piece) {
    return times(piece, static_cast<int>(limits::template_bytes / piece.size()));
  };
  (void)failure(fill("{%if a%}{%set b=1%}{%endif%}"));
  (void)failure(fill("{{a}}"));
  (void)failure(fill("{#"));
  (void)failure(fill("{%raw"));
  (void)failure(fill("{%raw%}"));
  (void)failure(fill("{{'"));
  (void)failure("{{ " + fill("1,") + " }}");
  (void)failure(fill("{% macro m() %}{% endmacro %}"));
  (void)failure(fill("   \n"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
}

TEST(JinjaLimits, SourceIsCapped) {
  EXPECT_EQ(failure(std::string(limits::template_bytes, 'x')), "");
  EXPECT_THAT(failure(std::string(limits::template_bytes + 1, 'x')), HasSubstr("limit"));
}

TEST(JinjaLimits, DeepContextIsRefused) {
  Json value = 1;
  for (int i = 0; i < 500; ++i) value = Json::array({value});
  EXPECT_THAT(failure("{{ x }}", {{"x", value}}), HasSubstr("levels"));
}

TEST(JinjaLimits, LargeContextIsRefused) {
  EXPECT_THAT(failure("{{ x }}", {{"x", std::string(limits::template_memory, 'x')}}), HasSubstr(kMemory));
}

TEST(JinjaLimits, ManyKeysAreFoundInTime) {
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  for (int i = 0; i < 50'000; ++i)
    static_cast<std::vector<Json::object_t::value_type>&>(members).emplace_back("key" + std::to_string(i), i);
  EXPECT_EQ(ChatTemplate("{{ x|length }}{{ x.key49999 }}", "t").render({{"x", object}}), "5000049999");
}

TEST(JinjaLimits, MemoryStaysBounded) {
  for (const char* source :
       {"{{ 'a' * 10**9 }}", "{{ [0] * 10**9 }}", "{% for i in range(100000) %}{{ 'abcdefghij' * 1000 }}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% for i in range(100000) %}{% for j in range(100000) %}{{ loop.index }}{% endfor %}{% endfor %}"})
    EXPECT_NE(failure(source), "") << source;
#if !defined(__SANITIZE_ADDRESS__)
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 128 * 1024);  // KiB, of the whole test program and all tests before
#endif
}

}  // namespace
}  // namespace candor
