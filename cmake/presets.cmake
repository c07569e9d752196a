# esscher_presets(): builds experiments/*.toml into the library, so that an installed program
# finds its presets without looking for files.
function(esscher_presets)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/*.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(ESSCHER_PRESETS "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(APPEND ESSCHER_PRESETS "    {\"${name}\", R\"preset(${text})preset\"},\n")
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/preset_files.h.in ${folder}/preset_files.h @ONLY)
  # For this source alone, so that the command lines of all others stay the same.
  set_source_files_properties(config/presets.cc PROPERTIES INCLUDE_DIRECTORIES ${folder})
endfunction()
