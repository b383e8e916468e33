// The folder where pulled models lie, and the short names that stand for what is in it. A name is a path below that
// folder, with or without .gguf; a path that exists always comes first. Not a goal: a database; the folder is the list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace candor {

/// $CANDOR_MODELS, else $XDG_DATA_HOME/candor/models, else $HOME/.local/share/candor/models. Need not exist. Throws
/// Error(usage) if none of the three is set.
[[nodiscard]] std::filesystem::path models_folder();

struct ListedModel {
  std::string name;
  std::filesystem::path path;
  std::string kind;         ///< artifact, Hugging Face, GGUF, or unfinished: a pull that was interrupted
  std::uint64_t bytes = 0;  ///< on the disk
};

/// Models in `folder` and in the folders of owners in it, by name.
[[nodiscard]] std::vector<ListedModel> list_models(const std::filesystem::path& folder);

/// What a MODEL argument means: the path if there is something, else the model of that name; else the argument itself,
/// for the reader to refuse.
[[nodiscard]] std::filesystem::path resolve_model(const std::string& argument);

}  // namespace candor
