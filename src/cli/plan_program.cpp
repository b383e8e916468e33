#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/memory.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/table.h"

namespace candor::cli {
namespace {

/// "state f32[T, 512] @0": T is rows of the batch, S sequences; @ is the place in the phase's buffers.
std::string describe(const ProgramValue& value) {
  return fmt::format("{} {}[{}, {}] @{}", value.slot, to_string(value.encoding),
                     value.rows == kernels::RowKind::tokens ? "T" : "S", value.cols, value.offset);
}

std::string operands_of(const Instruction& instruction, const ProgramPhase& phase) {
  std::vector<std::string> out;
  for (const ProgramOperand& operand : instruction.operands)
    out.push_back(operand.is_external
                      ? std::string(to_string(operand.external))
                      : fmt::format("{} @{}", phase.values[operand.value].slot, phase.values[operand.value].offset));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string weights_of(const Instruction& instruction, const Program& program) {
  std::vector<std::string> out;
  for (const std::uint32_t index : instruction.weights) {
    const ProgramWeight& weight = program.weights[index];
    out.push_back(fmt::format("{} {}", weight.tensor, weight.layout.empty() ? "as stored" : weight.layout));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

void print_memory(const Program& program) {
  const ProgramLimits& limits = program.limits;
  Table table({"memory", ">size", ""});
  table.add({"weights, packed", format_bytes(program.packed_bytes()), "in the layouts that kernels read"});
  table.add({"weights, mapped", format_bytes(program.mapped_bytes()), "read in the model's files"});
  table.add({"KV cache", format_bytes(program.kv_bytes()),
             fmt::format("{}: {}, {} of {}{}", to_string(limits.layout), counted(program.kv.size(), "layer"),
                         counted(limits.pages, "page"), counted(limits.page_positions, "position"),
                         limits.window == 0 ? "" : fmt::format(", the last {} kept", limits.window))});
  table.add({"buffers", format_bytes(program.arena_bytes),
             fmt::format("{}, {}", counted(limits.rows, "row"), counted(limits.sequences, "sequence"))});
  table.add({"scratch", format_bytes(program.scratch_bytes), ""});
  table.print();
  const DecodeLoop& loop = program.decode_loop;
  print(fmt::format("\ndecode loop: batches of {}, stop tokens seen {}, tokens read back every {}\n", loop.batch_size,
                    loop.stop_check_per_token ? "at once" : "at read-backs",
                    loop.readback_interval == 1 ? "batch" : fmt::format("{} batches", loop.readback_interval)));
}

void print_phase(const Program& program, Phase which, const std::optional<std::int32_t>& layer) {
  const ProgramPhase& phase = program.phase(which);
  print(fmt::format("\n{}: {}\n", bold(to_string(which)), counted(phase.instructions.size(), "instruction")));
  Table table({">#", "step", ">layer", "kernel", "reads", "writes", "weights"});
  for (std::size_t i = 0; i < phase.instructions.size(); ++i) {
    const Instruction& instruction = phase.instructions[i];
    if (layer && instruction.layer != *layer) continue;
    table.add({std::to_string(i), instruction.step, instruction.layer < 0 ? "" : std::to_string(instruction.layer),
               instruction.kernel + "#" + instruction.entry, operands_of(instruction, phase),
               describe(phase.values[instruction.result]), weights_of(instruction, program)});
  }
  table.print();
}

Json filtered_json(const Program& program, const PlanCommandArguments& arguments) {
  Json json = program.to_json();
  for (const char* phase : {"prefill", "decode"}) {
    if (!arguments.phase.empty() && arguments.phase != phase) {
      json.erase(phase);
    } else if (arguments.layer) {
      Json kept = Json::array();
      for (const Json& instruction : json[phase])
        if (instruction["layer"] == *arguments.layer) kept.push_back(instruction);
      json[phase] = std::move(kept);
    }
  }
  return json;
}

}  // namespace

int plan_program(const PlanCommandArguments& arguments) {
  const runtime::CompiledModel model = runtime::compile_model(arguments.plan.model, plan_options(arguments.plan));
  const runtime::LoadOptions options = load_options(arguments.load, false);
  const auto backend = runtime::make_backend(runtime::backend_of(model), options);
  const Program program = runtime::bind_model(model, *backend, options);
  if (arguments.json) {
    print_json(filtered_json(program, arguments));
    return 0;
  }
  print(fmt::format("plan {} on {}\n\n", program.plan_digest, program.backend));
  print_memory(program);
  if (arguments.phase != "decode") print_phase(program, Phase::prefill, arguments.layer);
  if (arguments.phase != "prefill") print_phase(program, Phase::decode, arguments.layer);
  return 0;
}

}  // namespace candor::cli
