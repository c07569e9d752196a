# Flags of our own code. A consumer's flags are never touched.
add_library(esscher_flags INTERFACE)
target_compile_features(esscher_flags INTERFACE cxx_std_20)
if(ESSCHER_WARNINGS)
  target_compile_options(esscher_flags INTERFACE
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-qual -Wundef)
endif()
# Highway keeps sums and products exactly as written; contraction would differ between targets.
target_compile_options(esscher_flags INTERFACE -ffp-contract=off)

# esscher_precompile(target header...): these headers are read once per target, in place of two seconds
# per file. That each header and each file includes what it needs is shown by builds without them:
# scripts/check_consumers compiles the installed headers alone, scripts/tidy reads files one by one.
function(esscher_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# esscher_text(target): code that writes text or connects the library to something else, compiled fast.
function(esscher_text target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${ESSCHER_TEXT_OPTIMIZATION}>)
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

# esscher_core_folders(VAR), esscher_lab_folders(VAR): the folders of a library, or those of them that
# ESSCHER_FOLDERS names.
set(ESSCHER_FOLDERS "" CACHE STRING "folders of the libraries to build and test; empty: all of them")
function(esscher_some_folders library variable)
  esscher_layers(${library} folders)
  if(ESSCHER_FOLDERS)
    string(REPLACE ";" "|" some "${ESSCHER_FOLDERS}")
    list(FILTER folders INCLUDE REGEX "^(${some})$")
  endif()
  set(${variable} ${folders} PARENT_SCOPE)
endfunction()
macro(esscher_core_folders variable)
  esscher_some_folders(core ${variable})
endmacro()
macro(esscher_lab_folders variable)
  esscher_some_folders(lab ${variable})
endmacro()

# esscher_together(VAR NAME [file...]): with ESSCHER_TOGETHER, the sources in VAR become files that include several of
# them, which compiles in little more than half of the time; cmake/together.py says which may stand together. The
# files named here stay alone, because they have properties of their own.
option(ESSCHER_TOGETHER "compile several sources as one where they cannot notice each other (needs Python)" OFF)
if(ESSCHER_TOGETHER)
  find_program(ESSCHER_PYTHON3 NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(ESSCHER_PYTHON3 NAMES python3)
  if(NOT ESSCHER_PYTHON3)
    message(STATUS "Python is not there: every source is compiled alone")
  endif()
endif()
function(esscher_together variable name)
  if(NOT ESSCHER_TOGETHER OR NOT ESSCHER_PYTHON3)
    return()
  endif()
  set(alone ${ARGN})
  list(TRANSFORM alone PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(sources ${${variable}})
  list(REMOVE_ITEM sources ${alone})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/together.py)
  execute_process(
    COMMAND ${ESSCHER_PYTHON3} -B ${PROJECT_SOURCE_DIR}/cmake/together.py ${PROJECT_SOURCE_DIR}
            ${PROJECT_BINARY_DIR}/together ${name} 16 ${sources}
    OUTPUT_VARIABLE made COMMAND_ERROR_IS_FATAL ANY)
  # GCC takes what a source keeps for itself for something that a header shows to others.
  set(batches ${made})
  list(REMOVE_ITEM batches ${sources})
  set_property(SOURCE ${batches} APPEND PROPERTY COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  foreach(file IN LISTS alone)
    if(file IN_LIST ${variable})
      list(APPEND made ${file})
    endif()
  endforeach()
  set(${variable} ${made} PARENT_SCOPE)
endfunction()
