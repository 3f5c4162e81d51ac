#include "data/pixels/decode.h"

// jpeglib.h needs FILE and size_t before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

namespace lockstep {
namespace {

#define LOCKSTEP_TEXT_OF(x) #x
#define LOCKSTEP_VALUE_OF(x) LOCKSTEP_TEXT_OF(x)

// Each block of 64 pixels has a code for its mean, of a bit at least.
constexpr int64_t kMostPixelsOfByte = 512;
constexpr int kMostScans = 200;  // a progressive image with more is made to waste time

// The library reports through callbacks that must not return; they jump back into decode_jpeg. Between there
// and here only C frames lie.
struct Reports {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* reports = reinterpret_cast<Reports*>(info->err);
  reports->base.format_message(info, reports->text);
  std::longjmp(reports->back, 1);
}

// Bytes between two markers, or a colour transform nobody knows, are harmless and common.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_TOO_MUCH_DATA;
}

void report(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) fail(info);
}

void keep_quiet(j_common_ptr) {}

void watch_scans(j_common_ptr info) {
  auto* reading = reinterpret_cast<j_decompress_ptr>(info);
  if (reading->input_scan_number <= kMostScans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  fail(info);
}

// Inverted inks, as Adobe writes them; the others are so rare that the same is assumed.
void inks_to_rgb(const uint8_t* inks, int64_t count, uint8_t* rgb) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < 3; ++c)
      rgb[i * 3 + c] = static_cast<uint8_t>((inks[i * 4 + c] * inks[i * 4 + 3] + 127) / 255);
}

// The rows and columns to decode, in pixels of the scaled image.
struct Window {
  JDIMENSION left, top, width, height;
};

Window window_of(const WantedPart& part, const jpeg_decompress_struct& reading) {
  if (part.width == 0 || part.height == 0) return {0, 0, reading.output_width, reading.output_height};
  const auto begin = [&](int64_t at) { return static_cast<JDIMENSION>(at * part.eighths / 8); };
  const auto end = [&](int64_t at, JDIMENSION all) {
    return std::min(static_cast<JDIMENSION>((at * part.eighths + 7) / 8), all);
  };
  const JDIMENSION left = begin(part.x), top = begin(part.y);
  return {left, top, end(part.x + part.width, reading.output_width) - left,
          end(part.y + part.height, reading.output_height) - top};
}

void set_extent(const jpeg_decompress_struct& reading, JDIMENSION left, JDIMENSION width,
                const Window& window, Pixels& pixels) {
  pixels.resize(width, window.height);
  pixels.left = left;
  pixels.top = window.top;
  // Cropping has changed output_width.
  pixels.whole_width = (static_cast<int64_t>(reading.image_width) * reading.scale_num + 7) / 8;
  pixels.whole_height = reading.output_height;
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8"); }

std::string decode_jpeg(std::string_view bytes, const PartChoice& wanted, ImageExtent& full, Pixels& pixels) {
  jpeg_decompress_struct reading;
  Reports reports;
  jpeg_progress_mgr progress{};
  std::vector<uint8_t> scratch;  // one row
  reading.err = jpeg_std_error(&reports.base);
  reports.base.error_exit = fail;
  reports.base.emit_message = report;
  reports.base.output_message = keep_quiet;
  progress.progress_monitor = watch_scans;
  // Nothing with a destructor is made between here and the end: a jump would pass over it.
  if (setjmp(reports.back) != 0) {
    jpeg_destroy_decompress(&reading);
    return reports.text;
  }
  jpeg_create_decompress(&reading);
  reading.progress = &progress;
  jpeg_mem_src(&reading, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&reading, TRUE);
  full = {reading.image_width, reading.image_height};
  if (full.width * full.height > kMostPixels) {
    jpeg_destroy_decompress(&reading);
    return "more than 2^27 pixels";
  }
  if (full.width * full.height > static_cast<int64_t>(bytes.size()) * kMostPixelsOfByte) {
    jpeg_destroy_decompress(&reading);
    return kTooLittleData;
  }
  const bool has_inks = reading.jpeg_color_space == JCS_CMYK || reading.jpeg_color_space == JCS_YCCK;
  reading.out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
  const WantedPart part = wanted(full);
  reading.scale_num = static_cast<unsigned>(part.eighths);
  reading.scale_denom = 8;
  reading.dct_method = JDCT_ISLOW;
  reading.do_fancy_upsampling = TRUE;
  reading.do_block_smoothing = FALSE;
  jpeg_start_decompress(&reading);
  const Window window = window_of(part, reading);
  JDIMENSION left = window.left, width = window.width;
  // Begins at a block at or before the one that is asked for, and says which.
  if (width < reading.output_width) jpeg_crop_scanline(&reading, &left, &width);
  set_extent(reading, left, width, window, pixels);
  if (has_inks) scratch.resize(static_cast<size_t>(pixels.width) * 4);
  if (window.top > 0) jpeg_skip_scanlines(&reading, window.top);
  for (int64_t y = 0; y < pixels.height; ++y) {
    JSAMPROW row = has_inks ? scratch.data() : pixels.row(y);
    jpeg_read_scanlines(&reading, &row, 1);
    if (has_inks) inks_to_rgb(scratch.data(), pixels.width, pixels.row(y));
  }
  // The rest is still read, so that damage there is found: up to the last row, because skipping that one too
  // would pass over the data unread.
  if (reading.output_scanline < reading.output_height) {
    scratch.resize(static_cast<size_t>(pixels.width) * 4);
    JSAMPROW row = scratch.data();
    jpeg_skip_scanlines(&reading, reading.output_height - reading.output_scanline - 1);
    jpeg_read_scanlines(&reading, &row, 1);
  }
  jpeg_finish_decompress(&reading);
  jpeg_destroy_decompress(&reading);
  return {};
}

std::string jpeg_library() { return "libjpeg-turbo " LOCKSTEP_VALUE_OF(LIBJPEG_TURBO_VERSION); }

}  // namespace lockstep
