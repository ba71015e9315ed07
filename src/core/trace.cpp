// The names of the kinds of trace events.

#include "core/trace.hpp"

namespace tailrace {

bool is_planned(TraceEvent::Kind kind) {
  return kind == TraceEvent::Kind::plan_encode || kind == TraceEvent::Kind::plan_write;
}

const char* trace_kind_name(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::read: return "read";
    case TraceEvent::Kind::exchange: return "exchange";
    case TraceEvent::Kind::encode: return "encode";
    case TraceEvent::Kind::verify: return "verify";
    case TraceEvent::Kind::wait: return "wait";
    case TraceEvent::Kind::write: return "write";
    case TraceEvent::Kind::index: return "index";
    case TraceEvent::Kind::commit: return "commit";
    case TraceEvent::Kind::sync: return "sync";
    case TraceEvent::Kind::plan_encode: return "plan encode";
    case TraceEvent::Kind::plan_write: return "plan write";
    case TraceEvent::Kind::application: return "application";
    case TraceEvent::Kind::end_step: return "end_step";
  }
  return "unknown";
}

}  // namespace tailrace
