#include "esscher/io/drop_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>

namespace esscher {

void drop_pages(const MappedFile& file, Bytes part) {
  const Bytes whole = file.bytes();
  const std::less_equal<const std::byte*> before;
  if (part.empty() || !before(whole.data(), part.data()) ||
      !before(part.data() + part.size(), whole.data() + whole.size())) {
    return;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - whole.data());
  const std::size_t first = (offset + page - 1) / page * page;  // a mapping starts at a page
  const std::size_t last = (offset + part.size()) / page * page;
  if (first >= last) return;
  // If the system does not take the advice, memory stays in use and nothing else changes.
  (void)::madvise(const_cast<std::byte*>(whole.data()) + first, last - first, MADV_DONTNEED);
}

}  // namespace esscher
