// Directories that appear complete or not at all, and the difference of two texts.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace esscher {

// Calls fill(temporary directory beside the target), then renames that directory to the target.
// False if another process was faster. A creation that fails or is killed leaves nothing under the
// name of the target; the next creation removes its remains.
bool create_directory_atomically(const std::filesystem::path& directory,
                                 const std::function<void(const std::filesystem::path&)>& fill);

// Removes what killed creations of this directory have left.
void remove_remains(const std::filesystem::path& directory);

// The lines of a and b that differ, as "- old" and "+ new", by their longest common subsequence.
std::string line_difference(std::string_view a, std::string_view b);

}  // namespace esscher
