#include <png.h>

#include <csetjmp>
#include <cstring>

#include "data/pixels/decode.h"

namespace lockstep {
namespace {

// Bytes that a byte of deflate can stand for.
constexpr size_t kMostUnpacked = 1032;

// What the library's callbacks are given.
struct Reading {
  std::string_view left;
  char problem[128] = {};
};

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  auto* reading = static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading->problem, text, sizeof reading->problem - 1);
  png_longjmp(png, 1);
}

void keep_quiet(png_structp, png_const_charp) {}

void take(png_structp png, png_bytep out, size_t count) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading->left.size()) png_error(png, "the data ends too early");
  std::memcpy(out, reading->left.data(), count);
  reading->left.remove_prefix(count);
}

void ask_for_rgb(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_read_update_info(png, info);
}

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

std::string decode_png(std::string_view bytes, ImageExtent& full, Pixels& pixels) {
  Reading reading{bytes};
  std::vector<png_bytep> rows;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, keep_quiet);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return "no memory";
  }
  // Nothing with a destructor is made between here and the end: a jump would pass over it.
  if (setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return reading.problem;
  }
  png_set_read_fn(png, &reading, take);
  png_set_user_limits(png, 1 << 16, 1 << 16);
  // Chunks beside the image may be large, and nobody reads them. The library would take memory for what a
  // chunk says of its length, whatever the limit, so it is told to pass over all that do not change a pixel.
  png_set_chunk_malloc_max(png, 1 << 20);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  full = {png_get_image_width(png, info), png_get_image_height(png, info)};
  if (full.width * full.height > kMostPixels) png_error(png, "more than 2^27 pixels");
  if (png_get_rowbytes(png, info) * static_cast<size_t>(full.height) > bytes.size() * kMostUnpacked)
    png_error(png, kTooLittleData);
  png_set_interlace_handling(png);
  ask_for_rgb(png, info);
  if (png_get_rowbytes(png, info) != static_cast<size_t>(full.width) * 3)
    png_error(png, "not of three colours");
  pixels.resize(full.width, full.height);
  rows.resize(static_cast<size_t>(full.height));
  for (int64_t y = 0; y < full.height; ++y) rows[static_cast<size_t>(y)] = pixels.row(y);
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return {};
}

std::string png_library() { return std::string("libpng ") + png_get_libpng_ver(nullptr); }

std::string decode_image(std::string_view bytes, const PartChoice& wanted, ImageExtent& full,
                         Pixels& pixels) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, wanted, full, pixels);
  if (is_png(bytes)) return decode_png(bytes, full, pixels);
  return "neither JPEG nor PNG";
}

std::string image_problem(std::string_view bytes) {
  thread_local Pixels pixels;
  ImageExtent full;
  return decode_image(
      bytes, [](ImageExtent) { return WantedPart{1}; }, full, pixels);
}

std::string image_libraries() { return jpeg_library() + ", " + png_library(); }

}  // namespace lockstep
