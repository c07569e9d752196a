// Directories that appear complete or not at all, and the difference of two texts.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace esscher {

// Calls fill(temporary directory beside the target), then renames it to the target. False if
// another process was faster. A failed or killed creation leaves nothing visible under the
// target's name; its remains are removed by the next creation.
bool create_directory_atomically(const std::filesystem::path& directory,
                                 const std::function<void(const std::filesystem::path&)>& fill);

// Removes what killed creations of this directory have left.
void remove_remains(const std::filesystem::path& directory);

// Lines of a and b that differ, "- old" / "+ new", with longest common subsequence in common.
std::string line_difference(std::string_view a, std::string_view b);

}  // namespace esscher
