# cmake -DSOURCE=web -DWORK=dir -DNPM=npm -DNODE=node -DOUT=file -P bundle.cmake
# Fetches the locked packages and joins their browser builds into one script. If that fails, for example
# without a network, the build goes on: the script is empty and reports say that they have no charts.
file(MAKE_DIRECTORY ${WORK})
file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json DESTINATION ${WORK})
execute_process(COMMAND ${NPM} ci --omit=dev --ignore-scripts --no-audit --no-fund
  WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
if(NOT failed)
  execute_process(COMMAND ${NODE} ${SOURCE}/bundle.mjs ${WORK}/node_modules ${OUT}
    RESULT_VARIABLE failed ERROR_VARIABLE why)
endif()
if(failed)
  message(WARNING "npm failed, reports will have no charts:\n${why}")
  file(WRITE ${OUT} "")
endif()
