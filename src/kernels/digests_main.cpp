// candor-kernel-digests REGISTRY SOURCE OUTPUT DEPFILE: run by the build. Writes the content digest of every kernel in
// the registry file to OUTPUT, a JSON object of "<file>#<entry>" → 64 hexadecimal digits, and the files it read to
// DEPFILE, so that the build runs it again when one of them changes.
#include <cstdio>
#include <exception>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "kernels/content_digest.h"
#include "kernels/registry.h"

namespace candor::kernels {
namespace {

std::string dependency_rule(const std::string& output, const ContentDigester& digester) {
  std::string rule = output + ":";
  for (const auto& file : digester.files_read()) {
    rule += " \\\n  ";
    for (const char c : file.string()) {
      if (c == ' ' || c == '#') rule += '\\';
      rule += c;
    }
  }
  return rule + "\n";
}

void write_digests(const char* registry_file, const char* source, const char* output, const char* depfile) {
  const Json json = parse_json(read_file(registry_file, limits::json_bytes), registry_file);
  const KernelRegistry registry(json, Json::object());
  ContentDigester digester(source);
  Json digests = Json::object();
  for (const KernelOperation& operation : registry.operations())
    for (const KernelVariant& variant : operation.variants)
      digests[fmt::format("{}#{}", variant.file, variant.entry)] = digester.digest(variant.file, variant.entry);
  write_file_atomically(output, to_js_json(digests, 1) + "\n");
  write_file_atomically(depfile, dependency_rule(output, digester));
}

}  // namespace
}  // namespace candor::kernels

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: candor-kernel-digests REGISTRY SOURCE OUTPUT DEPFILE\n", stderr);
    return 2;
  }
  try {
    candor::kernels::write_digests(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "candor-kernel-digests: %s\n", error.what());
    return 1;
  }
  return 0;
}
