/* The example program of trz/README.md, compiled as C. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <trz.h>

int main(void) {
  enum { n_y = 200, n_x = 300 };
  static float values[n_y][n_x];
  static float decoded[n_y][n_x];
  for (int y = 0; y < n_y; ++y) {
    for (int x = 0; x < n_x; ++x) values[y][x] = sinf(0.05f * (float)x) * cosf(0.03f * (float)y);
  }

  char text[200];
  trz_message message = {text, sizeof text};
  uint32_t words[16];
  int64_t n_words = trz_cd_values("abs=1e-3", NULL, words, 16, &message);

  const uint64_t extents[2] = {n_y, n_x};
  const trz_array array = {TRZ_F32, 2, extents, NULL};
  size_t capacity = trz_encoded_bytes_max(sizeof values);
  void* chunk = malloc(capacity);
  int64_t n_chunk = -1;
  if (chunk != NULL && n_words > 0) {
    n_chunk = trz_encode(words, (size_t)n_words, &array, values, sizeof values, chunk, capacity,
                         &message);
  }
  if (n_chunk < 0 ||
      trz_decode(chunk, (size_t)n_chunk, NULL, decoded, sizeof decoded, &message) < 0) {
    fprintf(stderr, "%s\n", text);
    return 1;
  }
  printf("%zu bytes became %lld\n", sizeof values, (long long)n_chunk);
  for (int y = 0; y < n_y; ++y) {
    for (int x = 0; x < n_x; ++x) {
      if (fabs((double)values[y][x] - (double)decoded[y][x]) > 1e-3) return 1;
    }
  }
  free(chunk);
  return 0;
}
