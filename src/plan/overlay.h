// Runtime overlays as people write them: single settings and several patches put together into one {session,
// executionPatch}, and refused where something in it would do nothing. Goals: whatever was asked for is in the plan or
// is an error that names the way that works. Not a goal: what the compiler checks anyway. Rejected: warnings; nobody
// reads them, and the run goes on without what was asked for.
#pragma once

#include <string_view>

#include "base/json.h"

namespace candor::plan {

/// Puts one setting over `session` (an object, or null for none yet): dotted keys, "=", and a value, which is JSON
/// where it parses and a text where it does not: "kvcache.kvDtype=f16", "kvcache.maxSeqLen=512". A later setting
/// replaces an earlier one of the same key. Throws Error(usage).
void apply_setting(Json& session, std::string_view setting);

/// One patch that does what `first` and then `second` ask for; either may be null. Throws Error(plan) where a list is
/// not an array.
[[nodiscard]] Json join_patches(const Json& first, const Json& second);

/// The overlay without what only repeats the manifest (`inference` is its), so that a plan and its digest are the same
/// whether something is said once or twice: settings that the session has already, empty objects, members of
/// executionPatch.set that leave their step as it is. Throws Error(plan), naming the key and the way that works, if a
/// part of the rest would be dropped by the compiler or read by nobody: another dtype than the manifest states, null
/// over the manifest's `kvcache` or `decodeLoop`, an empty list over its profiles, an unknown key.
[[nodiscard]] Json effective_overlay(const Json& inference, const Json& overlay);

/// The overlay as the compiler takes it: an entry of executionPatch.add may bring the `profile` of its step's kernel,
/// {precision?, kvIO?}, which then follows the session's profiles. Throws Error(plan) for a profile that is no such
/// object or whose step has no kernelRef. `overlay` is as effective_overlay() gives it.
[[nodiscard]] Json adopt_profiles(const Json& inference, Json overlay);

}  // namespace candor::plan
