# Run as a script: writes OUTPUT, a C++ file that defines the text of the file TEXT as NAMESPACE::NAME.
file(READ ${TEXT} content)
file(WRITE ${OUTPUT} "namespace ${NAMESPACE} {\n
extern const char* const ${NAME};
const char* const ${NAME} = R\"text(${content})text\";\n
}  // namespace ${NAMESPACE}\n")
