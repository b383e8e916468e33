#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace candor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string failure(const std::string& source, const Json& context = Json::object()) {
  try {
    return "rendered: " + ChatTemplate(source, "model/chat_template").render(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::text);
    return error.what();
  }
}

const Json kChat = {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})},
                    {"add_generation_prompt", true}};

TEST(ChatTemplate, RendersChatMl) {
  const ChatTemplate chatml(
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
      "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
      "chatml");
  EXPECT_EQ(chatml.render(kChat), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, ErrorsNameTheTemplateAndTheLine) {
  EXPECT_EQ(failure("a\n{{ b c }}"), "model/chat_template, line 2: expected end of print statement, got 'c'");
  EXPECT_EQ(failure("{% if x %}\n\n"),
            "model/chat_template, line 1: expected 'endif', got end of template; the innermost open block is 'if'");
  EXPECT_EQ(failure("\n\n{{ x|nope }}"), "model/chat_template, line 3: no filter named 'nope'");
  EXPECT_EQ(failure("\n{% for m in messages %}\n{{ m.role.x.y }}{% endfor %}", kChat),
            "model/chat_template, line 3: 'str' object has no attribute 'x'");
  EXPECT_EQ(failure("\n{{ raise_exception('roles must alternate') }}"),
            "model/chat_template, line 2: roles must alternate");
  EXPECT_EQ(failure("{%- set x = 1 -%}\n\n\n{{ 1 + 'a' }}"),
            "model/chat_template, line 4: unsupported operand types for +: 'int' and 'str'");
  EXPECT_EQ(failure("{{ name.x }}"), "model/chat_template, line 1: 'name' is undefined");
  EXPECT_EQ(failure("{% macro f(x) %}\n{{ x.a.b }}{% endmacro %}\n\n{{ f({}) }}"),
            "model/chat_template, line 2: 'dict' object has no attribute 'a'");
}

TEST(ChatTemplate, ControlCharactersInErrorsAreMadeVisible) {
  EXPECT_THAT(failure("{{ x['\x01\x1b[31m'].y }}"), HasSubstr("'x' is undefined"));
  EXPECT_THAT(failure("{{ {}['\x1b[31m'].y }}"), HasSubstr("\\x1b[31m"));
}

TEST(ChatTemplate, RefusesWhatIsNotUtf8) {
  EXPECT_THAT(failure("\xff"), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(failure("{{ x }}", {{"x", "\xc3"}}), HasSubstr("context.x"));
  EXPECT_THAT(failure("{{ '\\ud800' }}"), HasSubstr("no character"));
}

TEST(ChatTemplate, RefusesAContextThatIsNoObject) {
  EXPECT_THAT(failure("x", Json::array()), HasSubstr("must be a JSON object"));
}

TEST(ChatTemplate, SaysWhatItDoesNotSupport) {
  EXPECT_THAT(failure("{% include 'x' %}"), HasSubstr("cannot load other templates"));
  EXPECT_THAT(failure("{{ 'x'|urlize }}"), HasSubstr("not supported"));
  EXPECT_THAT(failure("{{ lipsum() }}"), HasSubstr("random"));
  EXPECT_THAT(failure("{{ 'x'.encode('utf-8') }}"), HasSubstr("not supported"));
  EXPECT_THAT(failure("{{ range }}"), HasSubstr("cannot be printed"));
  EXPECT_THAT(failure("{{ [1]|map('string') }}"), HasSubstr("cannot be printed"));
}

TEST(ChatTemplate, FollowsLaterReleasesOfJinja2) {
  const auto render = [](const char* source, const Json& context = Json::object()) {
    return ChatTemplate(source, "t").render(context);
  };
  // 3.1.5: pop and clear of a list are unsafe; 3.1.4: several namespace targets; 3.1.6: a branch hides no context.
  EXPECT_EQ(render("{{ [1].pop is defined }}{{ [1].clear is defined }}"), "FalseFalse");
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}"), "12");
  EXPECT_EQ(
      render("{% if a %}{{ x }}{% set x = 1 %}{% elif b %}{% set x = 2 %}{% else %}{% set x = 3 %}{% endif %}{{ x }}",
             {{"a", 1}, {"x", "c"}}),
      "c1");
  EXPECT_EQ(render("{{ '1e400'|int(7) }}"), "7");
}

TEST(ChatTemplate, KeepsTheOrderOfKeysAndExactIntegers) {
  const Json context =
      parse_json(R"({"x": {"b": 1, "a": 18446744073709551615, "c": -9223372036854775808}})", "context");
  EXPECT_EQ(ChatTemplate("{{ x|tojson }}", "t").render(context),
            R"({"b": 1, "a": 18446744073709551615, "c": -9223372036854775808})");
}

TEST(ChatTemplate, VariablesOfTheContextHideGlobals) {
  EXPECT_EQ(ChatTemplate("{{ range }}{{ dict }}", "t").render({{"range", 1}, {"dict", "d"}}), "1d");
}

TEST(ChatTemplate, RendersInManyThreadsAtOnce) {
  const ChatTemplate shared(
      "{% set ns = namespace(n=0) %}{% for i in range(200) %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}{{ "
      "'const'|upper }}",
      "t");
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) results[i] = shared.render({{"x", i}});
    });
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], std::to_string(200 * i) + "CONST");
}

TEST(ChatTemplate, CanBeMoved) {
  ChatTemplate first("{{ x }}", "t");
  const ChatTemplate second = std::move(first);
  EXPECT_EQ(second.render({{"x", 5}}), "5");
  EXPECT_EQ(second.source(), "{{ x }}");
}

TEST(ChatTemplate, DigestIsOfTheSource) {
  EXPECT_EQ(ChatTemplate("abc", "t").digest(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(LocalTime, ReadsOnlyDatesThatExist) {
  const LocalTime time = LocalTime::parse("2026-03-14T09:26:53");
  EXPECT_EQ(time.year, 2026);
  EXPECT_EQ(time.second, 53);
  EXPECT_NO_THROW((void)LocalTime::parse("2024-02-29T00:00:00"));
  for (const char* text : {"", "2026-03-14", "2026-03-14 09:26:53", "2026-02-29T00:00:00", "2026-13-01T00:00:00",
                           "2026-00-01T00:00:00", "2026-04-31T00:00:00", "2026-03-14T24:00:00", "2026-03-14T09:60:53",
                           "x026-03-14T09:26:53", "2026-03-14T09:26:53Z"})
    EXPECT_THROW((void)LocalTime::parse(text), Error) << text;
}

TEST(LocalTime, TheClockIsReadWhereNoTimeIsGiven) {
  const std::string year = ChatTemplate("{{ strftime_now('%Y') }}", "t").render(Json::object());
  EXPECT_EQ(year, std::to_string(LocalTime::now().year));
}

}  // namespace
}  // namespace candor
