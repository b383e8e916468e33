#include "runtime/session.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "kernels/operations.h"

namespace candor::runtime {
namespace {

const Instruction* last_of(const ProgramPhase& phase, std::string_view operation) {
  const auto found = std::find_if(phase.instructions.rbegin(), phase.instructions.rend(),
                                  [&](const Instruction& instruction) { return instruction.operation == operation; });
  return found == phase.instructions.rend() ? nullptr : &*found;
}

}  // namespace

Session::Session(LoadedModel& model)
    : model_(model),
      pages_(model.program().limits),
      prefixes_(model.program().plan_digest, model.program().limits.page_positions,
                model.program().limits.cached_pages) {
  if (prefixes_.most_pages() > 0) check_causal();
}

void Session::check_causal() const {
  for (const Instruction& instruction : model_.program().phase(Phase::prefill).instructions) {
    const kernels::KernelOperation* entry = model_.compiled().registry->find_operation(instruction.operation);
    if (entry == nullptr) continue;
    const kernels::Operation operation = kernels::parse_operation(entry->name, entry->raw);
    for (std::size_t i = 0; i < operation.constants.size(); ++i)
      if (operation.constants[i].name == "causal" && instruction.constants.number(i) == 0)
        fail(ErrorCode::plan,
             "step \"{}\" sees later tokens (its constant \"causal\" is false), so the beginning of a text is not what "
             "it would be alone and cannot be shared",
             instruction.step);
  }
}

void Session::check_fits(const Sequence& sequence, std::span<const std::uint32_t> tokens) const {
  if (tokens.empty()) fail(ErrorCode::usage, "there are no tokens to compute; give a prompt");
  for (const std::uint32_t token : tokens)
    if (token >= model_.compiled().vocabulary)
      fail(ErrorCode::usage, "token {} is outside the vocabulary of {}", token, model_.compiled().vocabulary);
  const std::uint64_t wanted = sequence.tokens.size() + tokens.size();
  if (wanted > model_.context())
    fail(ErrorCode::resource,
         "{} tokens do not fit the context of {}; shorten the prompt or raise --context (the model "
         "allows {})",
         wanted, model_.context(), model_.compiled().max_positions);
}

void Session::append(Sequence& sequence, std::span<const std::uint32_t> tokens) {
  const auto first = static_cast<std::uint32_t>(sequence.tokens.size());
  const auto positions = static_cast<std::uint32_t>(first + tokens.size());
  while (pages_.missing(sequence.pages, first, positions) > 0 && prefixes_.forget_oldest(pages_)) {
  }
  if (const auto copy = pages_.grow(sequence.pages, first, positions))
    model_.backend().copy_kv_page(copy->from, copy->to);
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
}

Sequence Session::fork(const Sequence& sequence, std::uint32_t tokens) {
  check_causal();
  if (tokens > sequence.tokens.size())
    fail(ErrorCode::usage, "a sequence of {} tokens has no beginning of {}", sequence.tokens.size(), tokens);
  Sequence out;
  out.pages = pages_.share(sequence.pages, tokens);
  out.tokens.assign(sequence.tokens.begin(), sequence.tokens.begin() + tokens);
  const std::size_t types = std::min<std::size_t>(sequence.types.size(), tokens);
  out.types.assign(sequence.types.begin(), sequence.types.begin() + static_cast<std::ptrdiff_t>(types));
  out.sampler = sequence.sampler;
  return out;
}

std::uint32_t Session::begin(Sequence& sequence, std::span<const std::uint32_t> tokens) {
  if (prefixes_.most_pages() == 0 || tokens.empty() || !sequence.tokens.empty()) return 0;
  sequence.pages.pages = prefixes_.find(tokens.first(tokens.size() - 1), sequence.types);
  for (const std::uint32_t page : sequence.pages.pages) pages_.hold(page);
  const auto known = static_cast<std::uint32_t>(sequence.pages.pages.size()) * model_.program().limits.page_positions;
  sequence.tokens.assign(tokens.begin(), tokens.begin() + known);
  sequence.types.resize(std::max<std::size_t>(sequence.types.size(), known));
  return known;
}

void Session::remember(const Sequence& sequence) {
  if (prefixes_.most_pages() > 0) prefixes_.add(sequence.tokens, sequence.types, sequence.pages.pages, pages_);
}

void Session::truncate(Sequence& sequence, std::uint32_t tokens) {
  if (tokens >= sequence.tokens.size()) return;
  pages_.shrink(sequence.pages, tokens);
  sequence.tokens.resize(tokens);
  sequence.types.resize(std::min<std::size_t>(sequence.types.size(), tokens));
}

void Session::run(Phase phase, std::span<const Segment> segments, std::span<const std::uint32_t> tokens,
                  std::span<const std::uint32_t> positions, std::span<const std::uint32_t> types) {
  model_.backend().run(phase, {tokens, positions, segments, types}, observer_ ? &observer_ : nullptr);
}

std::vector<std::uint32_t> Session::sampled(Phase phase, std::size_t sequences) const {
  const Instruction* sample = last_of(model_.program().phase(phase), "sample");
  if (!sample) fail(ErrorCode::plan, "the plan has no sampling step for {}, so it cannot generate", to_string(phase));
  std::vector<std::uint32_t> tokens(sequences);
  model_.backend().read_value(phase, sample->result, std::as_writable_bytes(std::span(tokens)));
  for (const std::uint32_t token : tokens)
    if (token == kNoToken)
      fail(ErrorCode::plan,
           "{} step \"{}\": the logits are not finite, so no token can be sampled; candor run --probe "
           "all finds the first step with such values",
           to_string(phase), sample->step);
  return tokens;
}

void Session::compute(Sequence& sequence, std::span<const std::uint32_t> tokens, Phase phase, const AfterRun& after) {
  check_fits(sequence, tokens);
  if (model_.program().phase(phase).instructions.empty())
    fail(ErrorCode::plan, "the plan has no {} steps", to_string(phase));
  std::vector<std::uint32_t> positions;
  const std::size_t most = phase == Phase::decode ? 1 : model_.program().limits.rows;
  for (std::size_t done = 0; done < tokens.size();) {
    const auto chunk = tokens.subspan(done, std::min(most, tokens.size() - done));
    const auto first = static_cast<std::uint32_t>(sequence.tokens.size());
    append(sequence, chunk);
    positions.resize(chunk.size());
    std::iota(positions.begin(), positions.end(), first);
    const Segment segment{0,
                          static_cast<std::uint32_t>(chunk.size()),
                          first,
                          sequence.pages.pages.data(),
                          &sequence.sampler,
                          sequence.tokens};
    sequence.types.resize(std::max(sequence.types.size(), sequence.tokens.size()));
    run(phase, {&segment, 1}, chunk, positions, std::span(sequence.types).subspan(first, chunk.size()));
    if (after) after(done, chunk.size());
    done += chunk.size();
  }
}

std::uint32_t Session::prefill(Sequence& sequence, std::span<const std::uint32_t> tokens,
                               const std::function<bool()>& cancelled) {
  const auto stop_if_asked = [&] {
    if (cancelled && cancelled()) fail(ErrorCode::cancelled, "stopped while reading the prompt");
  };
  stop_if_asked();
  compute(sequence, tokens, Phase::prefill, [&](std::size_t first, std::size_t count) {
    if (first + count < tokens.size()) stop_if_asked();
  });
  return sampled(Phase::prefill, 1).front();
}

void Session::check_batch(std::span<Sequence* const> sequences, std::span<const std::uint32_t> tokens) const {
  const std::uint32_t most = model_.program().limits.sequences;
  if (sequences.empty() || sequences.size() > most)
    fail(ErrorCode::usage, "{} sequences are to be decoded at once, and the program is laid out for 1 to {}",
         sequences.size(), most);
  if (tokens.size() != sequences.size())
    fail(ErrorCode::usage, "{} tokens are given for {} sequences", tokens.size(), sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    check_fits(*sequences[i], tokens.subspan(i, 1));
    if (std::find(sequences.begin(), sequences.begin() + static_cast<std::ptrdiff_t>(i), sequences[i]) !=
        sequences.begin() + static_cast<std::ptrdiff_t>(i))
      fail(ErrorCode::usage, "sequence {} of a batch stands in it before", i);
  }
}

std::vector<std::uint32_t> Session::decode(std::span<Sequence* const> sequences,
                                           std::span<const std::uint32_t> tokens) {
  check_batch(sequences, tokens);
  std::vector<Segment> segments;
  std::vector<std::uint32_t> positions;
  std::vector<std::uint32_t> types;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = *sequences[i];
    const auto position = static_cast<std::uint32_t>(sequence.tokens.size());
    try {
      append(sequence, tokens.subspan(i, 1));
    } catch (...) {
      for (std::size_t done = 0; done < i; ++done) truncate(*sequences[done], positions[done]);
      throw;
    }
    sequence.types.resize(std::max(sequence.types.size(), sequence.tokens.size()));
    positions.push_back(position);
    types.push_back(sequence.types[position]);
    segments.push_back(
        {static_cast<std::uint32_t>(i), 1, position, sequence.pages.pages.data(), &sequence.sampler, sequence.tokens});
  }
  run(Phase::decode, segments, tokens, positions, types);
  return sampled(Phase::decode, sequences.size());
}

std::uint32_t Session::most_ahead(const Sequence& sequence) const {
  if (observer_ || sequence.sampler.repetition_penalty != 1) return 1;
  return model_.backend().chained_runs();
}

void Session::submit_ahead(Sequence& sequence, std::uint32_t token, std::uint32_t count) {
  const Instruction* sample = last_of(model_.program().phase(Phase::decode), "sample");
  if (!sample) fail(ErrorCode::plan, "the plan has no sampling step for decode, so it cannot generate");
  // The tokens are not known yet, but their places are.
  const std::vector<std::uint32_t> places(count, token);
  check_fits(sequence, places);
  const auto first = static_cast<std::uint32_t>(sequence.tokens.size());
  append(sequence, places);
  std::vector<std::uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), first);
  std::vector<Segment> segments;
  for (std::uint32_t i = 0; i < count; ++i)
    segments.push_back({0, 1, first + i, sequence.pages.pages.data(), &sequence.sampler, {}});
  std::vector<Batch> batches;
  for (std::uint32_t i = 0; i < count; ++i)
    batches.push_back(
        {std::span(places).subspan(i, 1), std::span(positions).subspan(i, 1), std::span(segments).subspan(i, 1)});
  model_.backend().submit_chained(batches, sample->result, !ahead_.empty());
  ahead_.push_back({first, count});
}

std::vector<std::uint32_t> Session::collect_ahead(Sequence& sequence) {
  std::vector<std::uint32_t> tokens = model_.backend().collect_chained();
  const Ahead done = ahead_.front();
  ahead_.pop_front();
  if (std::find(tokens.begin(), tokens.end(), kNoToken) != tokens.end())
    fail(ErrorCode::plan,
         "decode step \"{}\": the logits are not finite, so no token can be sampled; candor run --probe all finds the "
         "first step with such values",
         last_of(model_.program().phase(Phase::decode), "sample")->step);
  const std::size_t known = std::min<std::size_t>(tokens.size(), sequence.tokens.size() - done.first - 1);
  std::copy_n(tokens.begin(), known, sequence.tokens.begin() + done.first + 1);
  return tokens;
}

std::size_t Session::tokens_ahead() const {
  std::size_t tokens = 0;
  for (const Ahead& submission : ahead_) tokens += submission.count;
  return tokens;
}

void Session::drop_ahead() noexcept {
  try {
    while (!ahead_.empty()) {
      ahead_.pop_front();
      (void)model_.backend().collect_chained();
    }
  } catch (const std::exception&) {
    ahead_.clear();  // the device failed; the next use of it says so
  }
}

void Session::logits(Sequence& sequence, std::span<const std::uint32_t> tokens, const LogitRows& rows) {
  const ProgramPhase& phase = model_.program().phase(Phase::prefill);
  if (phase.instructions.empty()) fail(ErrorCode::plan, "the plan has no prefill steps");
  const Instruction& head = phase.instructions.back();
  const ProgramValue& value = phase.values[head.result];
  if (value.encoding != Encoding::f32 || value.cols != model_.compiled().vocabulary)
    fail(ErrorCode::plan,
         "step \"{}\" ends the plan with {} columns of {}; logits are {} of f32. A model that makes vectors of texts "
         "has no logits; candor embed prints the vectors",
         head.step, value.cols, to_string(value.encoding), model_.compiled().vocabulary);
  std::vector<float> out;
  compute(sequence, tokens, Phase::prefill, [&](std::size_t first, std::size_t) {
    const std::uint32_t count = model_.backend().value_rows(Phase::prefill, head.result);
    out.resize(std::size_t{count} * value.cols);
    model_.backend().read_value(Phase::prefill, head.result, std::as_writable_bytes(std::span(out)));
    rows(static_cast<std::uint32_t>(first), out, count);
  });
}

std::vector<float> Session::embedding(std::span<const std::uint32_t> tokens, std::span<const std::uint32_t> types) {
  const Program& program = model_.program();
  const ProgramPhase& phase = program.phase(Phase::prefill);
  if (phase.instructions.empty()) fail(ErrorCode::plan, "the plan has no prefill steps");
  const Instruction& last = phase.instructions.back();
  const ProgramValue& value = phase.values[last.result];
  if (value.encoding != Encoding::f32 || value.rows != kernels::RowKind::sequences)
    fail(ErrorCode::plan,
         "step \"{}\" ends the plan, and what it writes is no vector of a text; a plan for embedding "
         "ends in pool, l2_normalize or a product after it",
         last.step);
  if (tokens.size() > program.limits.rows)
    fail(ErrorCode::resource,
         "{} tokens are more than a prefill chunk of {}, which must hold a whole text; shorten it "
         "or raise --prefill-chunk",
         tokens.size(), program.limits.rows);
  Sequence sequence;
  sequence.types.assign(types.begin(), types.end());
  std::vector<float> out(value.cols);
  try {
    compute(sequence, tokens, Phase::prefill);
    model_.backend().read_value(Phase::prefill, last.result, std::as_writable_bytes(std::span(out)));
  } catch (...) {
    truncate(sequence, 0);
    throw;
  }
  truncate(sequence, 0);
  return out;
}

std::uint64_t Session::bytes_per_token(std::uint32_t depth) const {
  const Program& program = model_.program();
  std::uint64_t bytes = 0;
  for (const Instruction& instruction : program.phase(Phase::decode).instructions) {
    for (const std::uint32_t index : instruction.weights) {
      const ProgramWeight& weight = program.weights[index];
      std::uint64_t read = weight.bytes;
      if (instruction.operation == "gather") read /= weight.rows;
      if (instruction.operation == "expert_matmul")  // of its `experts` weights, `perToken`
        read = read * instruction.constants.integer(1) / instruction.constants.integer(0);
      bytes += read;
    }
    if (instruction.kv < 0) continue;
    const ProgramKv& cache = program.kv[static_cast<std::size_t>(instruction.kv)];
    const std::uint64_t seen = cache.window == 0 ? depth : std::min<std::uint64_t>(depth, cache.window);
    bytes += cache.page_bytes / program.limits.page_positions * seen;
  }
  return bytes;
}

}  // namespace candor::runtime
