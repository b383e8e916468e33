// Several sequences in one session: decoded together, and begun from what others have computed. Every layout of the KV
// cache gives the bits that a sequence has alone.
#include <gmock/gmock.h>

#include "runtime/probe.h"
#include "runtime/tiny_llama.h"

namespace candor::runtime {
namespace {

using ::testing::HasSubstr;

class SequencesTest : public TinyLlama {
 protected:
  static LoadedModel load_several(std::string_view session, std::uint32_t sequences, std::uint32_t prefix = 0,
                                  std::string_view patch = {}) {
    LoadOptions options = load_options(8);
    options.context = 96;
    options.sequences = sequences;
    options.prefix_positions = prefix;
    return {compile_model(kTinyLlama, plan(session, patch, RowSelection::last)), options};
  }

  /// Tokens that differ by `salt`.
  static std::vector<std::uint32_t> text(std::uint32_t length, std::uint32_t salt = 0) {
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i < length; ++i) tokens.push_back((i * i * 13 + i * 5 + salt * 101 + 1) % 300);
    return tokens;
  }

  /// Every attention step sees 24 positions.
  static std::string windows() {
    const CompiledModel model = compile_model(kTinyLlama, {});
    Json patch{{"set", Json::array()}};
    for (const plan::ResolvedStep& step : model.plan.prefill) {
      if (step.op != "attention") continue;
      Json constants = step.raw["constants"];
      constants["window"] = 24;
      patch["set"].push_back({{"id", step.id}, {"constants", std::move(constants)}});
    }
    return to_js_json(patch);
  }

  /// The rows of logits that the next run computes, into `out`.
  static void watch(LoadedModel& model, Session& session, std::vector<float>& out) {
    session.observe([&model, &out](Phase phase, std::size_t i) {
      const Instruction& instruction = model.program().phase(phase).instructions[i];
      if (instruction.op == "lm_head") out = read_result(model.backend(), model.program(), phase, i);
    });
  }

  static std::vector<float> computed(LoadedModel& model, Session& session, Sequence& sequence,
                                     const std::vector<std::uint32_t>& tokens) {
    std::vector<float> logits;
    watch(model, session, logits);
    session.compute(sequence, tokens, Phase::prefill);
    session.observe({});
    return logits;
  }

  /// The last row of logits of a text that is computed alone, by a model of its own with the default layout.
  static std::vector<float> alone(LoadedModel& reference, const std::vector<std::uint32_t>& tokens) {
    Session session(reference);
    Sequence sequence;
    return computed(reference, session, sequence, tokens);
  }
};

struct Layout {
  const char* name;
  const char* session;
  bool windowed;
};

const Layout kLayouts[] = {{"contiguous", "", false},
                           {"paged", R"({"kvcache": {"layout": "paged", "pageSize": 16}})", false},
                           {"sliding", R"({"kvcache": {"layout": "sliding", "pageSize": 16}})", true}};

class Layouts : public SequencesTest, public ::testing::WithParamInterface<Layout> {
 protected:
  static LoadedModel load_layout(std::uint32_t sequences) {
    return load_several(GetParam().session, sequences, 0, GetParam().windowed ? windows() : std::string());
  }
  static LoadedModel load_reference() {
    return load_several("", 1, 0, GetParam().windowed ? windows() : std::string());
  }
};

TEST_P(Layouts, FiveSequencesOfAnyLengthTogetherAreAsEachAlone) {
  LoadedModel model = load_layout(5);
  LoadedModel reference = load_reference();
  Session session(model);
  std::vector<Sequence> sequences(5);
  std::vector<std::vector<std::uint32_t>> texts;
  for (std::uint32_t i = 0; i < 5; ++i) {
    texts.push_back(text(1 + i * 17, i));
    session.compute(sequences[i], texts[i], Phase::prefill);
  }
  std::vector<float> logits;
  watch(model, session, logits);
  std::vector<std::uint32_t> order{0, 1, 2, 3, 4};
  for (std::uint32_t step = 0; step < 20; ++step) {
    std::rotate(order.begin(), order.begin() + 2, order.end());
    std::vector<Sequence*> batch;
    std::vector<std::uint32_t> tokens;
    for (const std::uint32_t i : order) {
      batch.push_back(&sequences[i]);
      tokens.push_back((step * 29 + i * 7) % 300);
      texts[i].push_back(tokens.back());
    }
    const std::vector<std::uint32_t> sampled = session.decode(batch, tokens);
    if (step % 6 != 1) continue;
    const std::size_t vocabulary = logits.size() / 5;
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::vector<float> wanted = alone(reference, texts[order[i]]);
      const std::vector<float> got(logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary),
                                   logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocabulary));
      EXPECT_TRUE(same_bits(got, wanted)) << "sequence " << order[i] << " at step " << step;
      EXPECT_EQ(sampled[i], std::max_element(wanted.begin(), wanted.end()) - wanted.begin());
    }
  }
}

TEST_P(Layouts, AForkGoesOnAsIfItHadComputedItsBeginning) {
  LoadedModel model = load_layout(3);
  LoadedModel reference = load_reference();
  for (const std::uint32_t parted : {32u, 37u, 40u}) {
    Session session(model);
    Sequence trunk;
    session.compute(trunk, text(40), Phase::prefill);
    Sequence left = session.fork(trunk, parted);
    Sequence right = session.fork(left, parted);
    std::vector<std::uint32_t> wanted_left = text(40);
    wanted_left.resize(parted);
    std::vector<std::uint32_t> wanted_right = wanted_left;
    std::vector<std::uint32_t> wanted_trunk = text(40);
    const auto on = [&](Sequence& sequence, std::vector<std::uint32_t>& wanted, std::uint32_t salt) {
      const std::vector<std::uint32_t> more = text(9, salt);
      wanted.insert(wanted.end(), more.begin(), more.end());
      EXPECT_TRUE(same_bits(computed(model, session, sequence, more), alone(reference, wanted)))
          << "parted at " << parted << ", text " << salt;
      EXPECT_EQ(sequence.tokens, wanted);
    };
    on(left, wanted_left, 1);
    on(right, wanted_right, 2);
    on(trunk, wanted_trunk, 3);
    on(left, wanted_left, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, ::testing::ValuesIn(kLayouts),
                         [](const auto& parameter) { return parameter.param.name; });

TEST_F(SequencesTest, ABatchThatIsRefusedLeavesEverySequenceAsItWas) {
  LoadedModel model = load_several(R"({"kvcache": {"layout": "paged", "pageSize": 16}})", 2);
  Session session(model);
  Sequence a, b, c;
  session.compute(a, text(16), Phase::prefill);
  session.compute(b, text(96), Phase::prefill);
  const auto refused = [&](std::vector<Sequence*> batch, std::vector<std::uint32_t> tokens) {
    return refusal([&] { (void)session.decode(batch, tokens); });
  };
  EXPECT_THAT(refused({&a, &b}, {1, 2}), HasSubstr("97 tokens do not fit the context of 96"));
  EXPECT_THAT(refused({&a, &a}, {1, 2}), HasSubstr("sequence 1 of a batch stands in it before"));
  EXPECT_THAT(refused({&a, &b, &c}, {1, 2, 3}), HasSubstr("3 sequences are to be decoded at once"));
  EXPECT_THAT(refused({&a}, {1, 2}), HasSubstr("2 tokens are given for 1 sequences"));
  EXPECT_THAT(refused({&a}, {999}), HasSubstr("outside the vocabulary"));
  session.compute(c, text(70), Phase::prefill);  // all 12 pages are taken now
  session.truncate(b, 80);
  EXPECT_THAT(refused({&a, &b}, {1, 2}), HasSubstr("pages too few"));
  EXPECT_EQ(a.tokens.size(), 16u);
  EXPECT_EQ(b.tokens.size(), 80u);
  session.truncate(c, 0);
  (void)session.decode(std::vector<Sequence*>{&a, &b}, std::vector<std::uint32_t>{1, 2});
  EXPECT_EQ(a.tokens.size(), 17u);
}

TEST_F(SequencesTest, AKnownBeginningIsNotComputedAgainAndChangesNoBit) {
  LoadedModel model = load_several(R"({"kvcache": {"layout": "paged", "pageSize": 16}})", 1, 64);
  LoadedModel reference = load_several("", 1);
  EXPECT_EQ(model.program().limits.cached_pages, 4u);
  EXPECT_EQ(model.program().limits.pages, 10u);
  Session session(model);
  const auto run = [&](const std::vector<std::uint32_t>& tokens, std::uint32_t wanted_known) {
    Sequence sequence;
    const std::uint32_t known = session.begin(sequence, tokens);
    EXPECT_EQ(known, wanted_known);
    const std::vector<std::uint32_t> rest(tokens.begin() + known, tokens.end());
    EXPECT_TRUE(same_bits(computed(model, session, sequence, rest), alone(reference, tokens)));
    session.remember(sequence);
    session.truncate(sequence, 0);
  };
  run(text(60), 0);
  run(text(60), 48);
  run(text(48), 32);  // the last token's logits are wanted, so its page is computed again
  std::vector<std::uint32_t> parted = text(60);
  parted[40] = 7;
  run(parted, 32);
  run(parted, 48);
  run(text(90, 5), 0);  // as long as the cache and more
  run(text(90, 5), 64);
  run(text(60), 0);
}

TEST_F(SequencesTest, SequencesTakeThePagesOfTheCacheWhereTheyNeedThem) {
  LoadedModel model = load_several(R"({"kvcache": {"layout": "paged", "pageSize": 16}})", 1, 32);
  Session session(model);
  Sequence a, b;
  session.compute(a, text(64), Phase::prefill);
  session.remember(a);
  session.truncate(a, 0);
  session.compute(a, text(90, 1), Phase::prefill);
  session.compute(b, text(32, 2), Phase::prefill);  // all eight pages; the cache has none left
  session.truncate(a, 0);
  EXPECT_EQ(session.begin(a, text(64)), 0u);
}

TEST_F(SequencesTest, WhatCannotBeSharedIsRefusedWithTheReason) {
  EXPECT_THAT(refusal([] { (void)load_several("", 1, 64); }),
              HasSubstr("layout contiguous is one page a sequence; set session kvcache.layout=paged"));
  EXPECT_THAT(
      refusal([] { (void)load_several(R"({"kvcache": {"layout": "sliding", "pageSize": 16}})", 1, 64, windows()); }),
      HasSubstr("layout sliding gives the first ones back"));
  LoadedModel model = load_several("", 2);
  Session session(model);
  Sequence sequence;
  session.compute(sequence, text(5), Phase::prefill);
  EXPECT_THAT(refusal([&] { (void)session.fork(sequence, 6); }), HasSubstr("has no beginning of 6"));
  // A plan that looks in both directions.
  const CompiledModel compiled = compile_model(kTinyLlama, {});
  Json patch{{"set", Json::array()}};
  for (const plan::ResolvedStep& step : compiled.plan.prefill) {
    if (step.op != "attention") continue;
    Json constants = step.raw["constants"];
    constants["causal"] = false;
    patch["set"].push_back({{"id", step.id}, {"constants", std::move(constants)}});
  }
  LoadedModel both = load_several("", 1, 0, to_js_json(patch));
  Session looking(both);
  EXPECT_THAT(refusal([&] { (void)looking.fork(Sequence{}, 0); }), HasSubstr("sees later tokens"));
}

}  // namespace
}  // namespace candor::runtime
