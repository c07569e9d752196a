# esscher_kernels(VAR source...): those that Highway compiles once per instruction set.
function(esscher_kernels variable)
  set(kernels)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} found REGEX "#include \"hwy/foreach_target.h\"" LIMIT_COUNT 1)
    if(found)
      list(APPEND kernels ${source})
    endif()
  endforeach()
  set(${variable} ${kernels} PARENT_SCOPE)
endfunction()

# With ESSCHER_TARGETS=native: the definition that esscher/simd/targets-inl.h reads, else nothing.
set(ESSCHER_TARGETS all CACHE STRING
  "instruction sets of the kernels: all, or native (the best of this machine, and portable code)")
set_property(CACHE ESSCHER_TARGETS PROPERTY STRINGS all native)
if(ESSCHER_TARGETS STREQUAL native)
  if(NOT DEFINED ESSCHER_NATIVE_TARGET)
    try_run(native_ran native_compiled ${PROJECT_BINARY_DIR}/native_target
      ${PROJECT_SOURCE_DIR}/cmake/native_target.cc
      CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}
      LINK_LIBRARIES hwy::hwy CXX_STANDARD 20 RUN_OUTPUT_VARIABLE native_bit)
    if(NOT native_compiled OR NOT native_ran EQUAL 0)
      message(FATAL_ERROR "ESSCHER_TARGETS=native: the instruction sets of this machine are unknown")
    endif()
    set(ESSCHER_NATIVE_TARGET ${native_bit} CACHE INTERNAL "bit of Highway's best target here")
  endif()
  set(ESSCHER_KERNEL_DEFINITIONS ESSCHER_NATIVE_TARGET=${ESSCHER_NATIVE_TARGET})
elseif(NOT ESSCHER_TARGETS STREQUAL all)
  message(FATAL_ERROR "ESSCHER_TARGETS is ${ESSCHER_TARGETS}, expected all or native")
endif()
