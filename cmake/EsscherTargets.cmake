# Flags of our own code. A consumer's flags are never touched.
add_library(esscher_flags INTERFACE)
target_compile_features(esscher_flags INTERFACE cxx_std_20)
target_compile_options(esscher_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-qual -Wundef
  # Highway keeps sums and products exactly as written; contraction would differ between targets.
  -ffp-contract=off)

# esscher_precompile(target header...): these headers are read once per target. For programs and tests,
# which are a third of the build so; not for the library, whose sources show that each header includes
# what it needs, except under the sanitizers, which show other things.
function(esscher_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# esscher_sources(VAR folder...): every .cc of these folders, so that a new file needs no list.
function(esscher_sources variable)
  set(all)
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND all ${found})
  endforeach()
  set(${variable} ${all} PARENT_SCOPE)
endfunction()
