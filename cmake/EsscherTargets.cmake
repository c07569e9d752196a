# Flags of our own code. A consumer's flags are never touched.
add_library(esscher_flags INTERFACE)
target_compile_features(esscher_flags INTERFACE cxx_std_20)
target_compile_options(esscher_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-qual -Wundef
  # Highway keeps sums and products exactly as written; contraction would differ between targets.
  -ffp-contract=off)

# esscher_precompile(target header...): these headers are read once per target, in place of two seconds
# per file. That each header and each file includes what it needs is shown by builds without them:
# scripts/check_consumers compiles the installed headers alone, scripts/tidy reads files one by one.
function(esscher_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# esscher_glue(target): code that only connects the library to a heavy header-only one (CLI11, pybind11).
# Two units instead of twenty, at -O1: a fifth of the time to compile. Names in the unnamed namespaces
# of such a folder must differ.
function(esscher_glue target)
  if(NOT DEFINED CMAKE_UNITY_BUILD)  # clang-tidy reads file by file
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 11)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
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

# esscher_layers(LIBRARY VAR): the folders of a library in the order of esscher/layers.txt.
function(esscher_layers library variable)
  set(file ${PROJECT_SOURCE_DIR}/esscher/layers.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^${library} ")
  set(folders)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[a-z]+ +([a-z]+) .*" "\\1" folder "${line}")
    list(APPEND folders ${folder})
  endforeach()
  set(${variable} ${folders} PARENT_SCOPE)
endfunction()
