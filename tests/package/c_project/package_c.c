/* The smallest user of the installed library, in C: write one compressed field. */

#include <stdio.h>
#include <string.h>
#include <tailrace/tailrace.h>

int main(int argc, char** argv) {
  static double values[48 * 32];
  const uint64_t shape[2] = {48, 32};
  tailrace_file* file = NULL;
  tailrace_field field = TAILRACE_NO_FIELD;
  if (argc != 2 || strcmp(tailrace_version_string(), TAILRACE_VERSION_STRING) != 0) return 2;
  for (size_t i = 0; i < 48 * 32; ++i) values[i] = 0.25 * (double)i;

  if (tailrace_file_create(argv[1], TAILRACE_SERIAL, "codec=deflate", &file) != TAILRACE_OK ||
      tailrace_field_define(file, "/ramp", TAILRACE_F64, 2, shape, NULL, &field) != TAILRACE_OK ||
      tailrace_field_put(file, field, NULL, NULL, values) != TAILRACE_OK ||
      tailrace_file_close(file) != TAILRACE_OK) {
    fprintf(stderr, "%s\n", tailrace_thread_error());
    return 1;
  }
  return 0;
}
