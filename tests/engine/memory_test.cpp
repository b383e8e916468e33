// What a loaded model holds of its file: weights that were packed are not in memory a second time.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "engine/engine_fixture.h"
#include "formats/synth.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

/// Bytes of a mapped file that are in this process's memory.
std::uint64_t resident_bytes(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  std::uint64_t total = 0;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::string first;
    std::uint64_t kib = 0;
    fields >> first;
    if (first.find('-') != std::string::npos && first.back() != ':') ours = line.ends_with(path.string());
    if (ours && first == "Rss:" && fields >> kib) total += kib * 1024;
  }
  return total;
}

TEST(Memory, PackedWeightsLeaveTheFilesPages) {
  const TestFolder folder;
  SynthOptions model;
  model.output = folder.path() / "model.gguf";
  model.format = OutputFormat::gguf;
  model.shape = find_synth_shape("llama-15m");
  model.mix = QuantMix::f16;
  ThreadPool pool(2);
  synthesize(model, pool);
  const std::uint64_t size = std::filesystem::file_size(model.output);
  ASSERT_GT(size, 20u << 20);
  Engine engine(model.output, options(runtime::RowSelection::all));
  const std::vector<std::uint32_t> tokens{1, 2, 3};
  (void)engine.logits(tokens);
  EXPECT_LT(resident_bytes(model.output), size / 8);
}

}  // namespace
}  // namespace candor
