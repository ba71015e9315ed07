# Make all symbols of an object local but the given ones. Run by cmake -P.
#
#   -DNM=, -DOBJCOPY=   the tools   -DOBJECT=   the file   -DKEEP=   wildcards, with commas
#
# Names that are unique in a process (STB_GNU_UNIQUE) objcopy makes local as weak ones alone. Of
# these only: an undefined symbol that is weak may stay 0.

execute_process(COMMAND "${NM}" --defined-only "${OBJECT}" OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " u [^\n]+" unique "${symbols}")
list(TRANSFORM unique REPLACE "^ u " "")
list(JOIN unique "\n" unique)
file(WRITE "${OBJECT}.unique" "${unique}\n")
string(REPLACE "," ";--keep-global-symbol=" keep "--keep-global-symbol=${KEEP}")
execute_process(COMMAND "${OBJCOPY}" --strip-debug "--weaken-symbols=${OBJECT}.unique" "${OBJECT}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${OBJCOPY}" --wildcard ${keep} "${OBJECT}" COMMAND_ERROR_IS_FATAL ANY)
# Names that no relocation needs.
execute_process(COMMAND "${OBJCOPY}" --strip-unneeded "${OBJECT}" COMMAND_ERROR_IS_FATAL ANY)
