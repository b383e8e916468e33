# candor_embed(TARGET FILE SYMBOL): compiles the bytes of FILE into TARGET, as
#   namespace candor::embedded { extern const std::string_view SYMBOL; }
# which a source that uses it declares. FILE may be made by the build. The array is written at build time, so a changed
# file is embedded anew without configuring again.
function(candor_embed target file symbol)
  get_filename_component(file ${file} ABSOLUTE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${source} -DSYMBOL=${symbol} -P
            ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  # Each of these sources has an array of the same name.
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
