// Pulls a repository's model into a folder: everything goes into FOLDER.partial, each file is checked against the size
// and digest that the hub states for the pinned commit, and the folder appears under its name when all of it is there.
// An interrupted pull goes on where it stopped. Not a goal: caches shared between models, parallel connections.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/repository.h"

namespace candor {

struct PullOptions {
  HubReference reference;
  HubServer server;
  std::filesystem::path folder;    ///< where the model will lie
  std::vector<std::string> files;  ///< names; empty: those that make a model
};

struct PullResult {
  std::string commit;
  std::vector<HubFile> files;
  std::uint64_t bytes = 0;       ///< of all files
  std::uint64_t downloaded = 0;  ///< of those, fetched now
  bool was_there = false;        ///< the folder held this commit already
};

/// `started` learns the bytes of all files, `progress` those that are there. The record of what was pulled is
/// .candor-pull.json in the folder. Throws Error(usage) if the folder holds something else, Error(integrity) if a file
/// is not what the hub states, Error(resource) if the disk is too small, and as list_repository and http_get.
PullResult pull(const PullOptions& options, const std::function<void(std::uint64_t total)>& started,
                const std::function<void(std::uint64_t done)>& progress);

}  // namespace candor
