# Run as a script: writes OUTPUT, a C++ file that defines job_templates() from the files in TEXTS (a ;-list).
set(entries "")
foreach(text IN LISTS TEXTS)
  get_filename_component(name ${text} NAME_WE)
  file(READ ${text} content)
  string(APPEND entries "    {\"${name}\", R\"yaml(${content})yaml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"job/templates.h\"\n\nnamespace lockstep {\nnamespace {\n
constexpr JobTemplate kTemplates[] = {\n${entries}};\n
}  // namespace\n\nstd::span<const JobTemplate> job_templates() { return kTemplates; }\n\n}  // namespace lockstep\n")
