// Encoded images for tests, and archives of them.
#pragma once
#include <jpeglib.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "data/pixels/pixels.h"

namespace lockstep {

// Smooth stripes whose direction and colour depend on the kind: what a small network can tell apart.
inline Pixels striped_image(int64_t width, int64_t height, int kind, int variant) {
  Pixels image;
  image.resize(width, height);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const int64_t at = kind % 2 == 0 ? x : y;
      const auto level = static_cast<uint8_t>(64 + (at * 8 + variant * 5) % 128);
      for (int64_t c = 0; c < 3; ++c)
        image.row(y)[x * 3 + c] = c == kind % 3 ? level : static_cast<uint8_t>(20 + variant % 16);
    }
  return image;
}

inline std::string to_jpeg(const Pixels& image, int quality = 90, bool progressive = false) {
  jpeg_compress_struct writing;
  jpeg_error_mgr errors;
  writing.err = jpeg_std_error(&errors);
  jpeg_create_compress(&writing);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&writing, &bytes, &size);
  writing.image_width = static_cast<JDIMENSION>(image.width);
  writing.image_height = static_cast<JDIMENSION>(image.height);
  writing.input_components = 3;
  writing.in_color_space = JCS_RGB;
  jpeg_set_defaults(&writing);
  jpeg_set_quality(&writing, quality, TRUE);
  if (progressive) jpeg_simple_progression(&writing);
  jpeg_start_compress(&writing, TRUE);
  while (writing.next_scanline < writing.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(writing.next_scanline));
    jpeg_write_scanlines(&writing, &row, 1);
  }
  jpeg_finish_compress(&writing);
  std::string text(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&writing);
  std::free(bytes);  // NOLINT(cppcoreguidelines-owning-memory): the library made it
  return text;
}

// `format` is one of PNG_FORMAT_*; the pixels are given in it.
inline std::string to_png(int64_t width, int64_t height, uint32_t format, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<uint32_t>(width);
  image.height = static_cast<uint32_t>(height);
  image.format = format;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string text(size, '\0');
  png_image_write_to_memory(&image, text.data(), &size, 0, pixels, 0, nullptr);
  text.resize(size);
  return text;
}

inline std::string to_png(const Pixels& image) {
  return to_png(image.width, image.height, PNG_FORMAT_RGB, image.rgb.data());
}

// One member as ustar has it, padded; `type` as in the header.
inline std::string tar_member(const std::string& name, const std::string& text, char type = '0',
                              const std::string& prefix = "") {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& value) { header.replace(at, value.size(), value); };
  char digits[16];
  put(0, name.substr(0, 100));
  std::snprintf(digits, sizeof digits, "%011llo", static_cast<unsigned long long>(text.size()));
  put(124, digits);
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  put(345, prefix);
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(digits, sizeof digits, "%06o", sum);
  put(148, std::string(digits) + '\0');
  std::string padded = header + text;
  padded.resize((padded.size() + 511) / 512 * 512, '\0');
  return padded;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace lockstep
