// The registry's CPU entries and the compiled kernels are the same set, on every instruction set.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/cpu/kernel.h"
#include "kernels/registry.h"

namespace candor::cpu {
namespace {

std::set<std::string> registered() {
  std::set<std::string> names;
  for (const auto& operation : kernels::builtin_registry().operations())
    for (const auto& variant : operation.variants)
      if (variant.raw.value("backend", "") == "cpu") names.insert(variant.file + "#" + variant.entry);
  return names;
}

TEST(KernelTable, HoldsWhatTheRegistrySays) {
  ASSERT_FALSE(registered().empty());
  for (const Isa isa : available_isas()) {
    std::set<std::string> compiled;
    for (const Kernel& kernel : cpu::kernels(isa)) {
      compiled.insert(std::string(kernel.file) + "#" + std::string(kernel.entry));
      EXPECT_NE(kernel.run, nullptr);
      EXPECT_EQ(kernel.pack == nullptr, kernel.packed_bytes == nullptr);
      EXPECT_EQ(kernel.pack == nullptr, kernel.layout.empty());
      EXPECT_EQ(find_kernel(isa, kernel.file, kernel.entry), &kernel);
    }
    EXPECT_EQ(compiled, registered()) << to_string(isa);
    EXPECT_EQ(compiled.size(), cpu::kernels(isa).size()) << "listed twice";
  }
}

TEST(KernelTable, DeclaresEncodingsThatExist) {
  for (const auto& operation : kernels::builtin_registry().operations()) {
    for (const auto& variant : operation.variants) {
      if (variant.raw.value("backend", "") != "cpu") continue;
      ASSERT_TRUE(variant.raw.contains("encodings")) << variant.file;
      for (const auto& [operand, encodings] : variant.raw["encodings"].items()) {
        if (operand == "sampler") continue;
        for (const auto& name : encodings.is_array() ? encodings : Json::array({encodings}))
          EXPECT_TRUE(parse_encoding(name.get<std::string>())) << variant.file << " " << operand;
      }
      EXPECT_FALSE(variant.raw.value("contract", "").empty()) << variant.file;
      EXPECT_TRUE(kernels::builtin_registry().digest(variant.file, variant.entry)) << variant.file;
    }
  }
}

TEST(KernelTable, UnknownNamesAreNotFound) {
  EXPECT_EQ(find_kernel(Isa::portable, "cpu/matmul_f16.cpp", "other"), nullptr);
  EXPECT_EQ(find_kernel(Isa::portable, "cpu/none.cpp", "main"), nullptr);
  EXPECT_EQ(available_isas().back(), Isa::portable);
}

}  // namespace
}  // namespace candor::cpu
