# esscher_web(target): puts web/report.css, web/report.js, web/charts/ and the bundled Vega into the target.
option(ESSCHER_WEB "charts in reports (needs npm and, once, the network)" ${PROJECT_IS_TOP_LEVEL})
set(esscher_web_dir ${CMAKE_CURRENT_LIST_DIR})

function(esscher_web target)
  set(work ${CMAKE_CURRENT_BINARY_DIR}/web)
  file(MAKE_DIRECTORY ${work})
  set(vega ${work}/vega.js)
  find_program(NPM npm)
  find_program(NODE NAMES node nodejs)
  if(ESSCHER_WEB AND EXISTS ${esscher_web_dir}/vega.js)  # a source distribution brings it
    set(vega ${esscher_web_dir}/vega.js)
  elseif(ESSCHER_WEB AND NPM AND NODE)
    add_custom_command(OUTPUT ${vega}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${esscher_web_dir} -DWORK=${work}/npm -DNPM=${NPM} -DNODE=${NODE} -DOUT=${vega}
              -P ${esscher_web_dir}/bundle.cmake
      DEPENDS ${esscher_web_dir}/package-lock.json ${esscher_web_dir}/bundle.cmake ${esscher_web_dir}/bundle.mjs
      COMMENT "Bundling vega for reports" VERBATIM)
  else()
    set(vega ${work}/empty.js)
    file(WRITE ${vega} "")
  endif()
  set(css ${esscher_web_dir}/report.css)
  set(js ${esscher_web_dir}/report.js)
  # In the order in which they use each other.
  set(charts numbers series layout theme curves tiles draw)
  list(TRANSFORM charts PREPEND ${esscher_web_dir}/charts/)
  list(TRANSFORM charts APPEND .js)
  set(charts_incbin ${charts})
  list(TRANSFORM charts_incbin REPLACE "(.+)" ".incbin \"\\1\"")
  list(JOIN charts_incbin "\n" charts_incbin)
  configure_file(${esscher_web_dir}/assets.cc.in ${work}/assets.cc @ONLY)
  set_source_files_properties(${work}/assets.cc PROPERTIES OBJECT_DEPENDS "${css};${js};${charts};${vega}")
  target_sources(${target} PRIVATE ${work}/assets.cc)
endfunction()
