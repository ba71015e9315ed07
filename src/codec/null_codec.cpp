// none: the values unchanged. The template to copy for a codec of your own.
//
// A codec is one file with a make function, one entry in built_in_codecs.cpp, a golden file and a
// row in docs/codecs.md. The make function reads the codec's settings and refuses those that it
// cannot honour. It returns stages (OwnStage, see xor_codec.cpp) in a pipeline, or its own
// implementation of Codec (portable.cpp).

#include "codec/registry.hpp"
#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

Result<std::unique_ptr<Codec>> make_null_codec(const CodecRequest& request, const std::string&) {
  CodecSettings settings(request);
  TAILRACE_TRY(settings.finish());
  return make_pipeline_codec({.name = "none"}, request, {});
}

}  // namespace tailrace
