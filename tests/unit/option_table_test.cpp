// The table of options agrees with the structs, the documents and all ranks.

#include "core/option_table.hpp"
#include "core/codec_registry.hpp"
#include "layout/layout.hpp"
#include "policy/door_rules.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "container_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The page is generated from the table; TAILRACE_WRITE_DOCS makes this test write it.
TEST(OptionTable, ThePageIsWhatTheTableSays) {
  const std::string path = std::string(TAILRACE_SOURCE_FOLDER) + "/docs/options.md";
  if (std::getenv("TAILRACE_WRITE_DOCS") != nullptr) std::ofstream(path) << options_page();
  EXPECT_EQ(file_text(path), options_page())
      << "run this test with TAILRACE_WRITE_DOCS=1 and commit docs/options.md";
}

/// Every name that the interface serves occurs in the C header, which is the manual. Exceptions are
/// "trace" and "why", which only programs that use the engine itself see.
TEST(OptionTable, TheHeaderNamesEveryOption) {
  const std::string header =
      file_text(std::string(TAILRACE_SOURCE_FOLDER) + "/include/tailrace/tailrace.h");
  const auto names = [&](std::string_view name) {
    return header.find(std::string(name) + "=") != std::string::npos;
  };
  for (const auto& entry : file_option_table()) {
    if (entry.name == "trace" || entry.name == "why") continue;
    if ((entry.doors & bit_of(Door::steps)) == 0) continue;
    EXPECT_TRUE(names(entry.name)) << entry.name;
  }
  for (const auto& entry : field_option_table()) {
    if (entry.name == "roles") continue;  // Programs in steps bound each field that they define.
    EXPECT_TRUE(names(entry.name)) << entry.name;
  }
}

TEST(OptionTable, NamesOccurOnce) {
  std::set<std::string_view> names;
  for (const auto& entry : file_option_table()) EXPECT_TRUE(names.insert(entry.name).second);
  for (const auto& entry : field_option_table()) EXPECT_TRUE(names.insert(entry.name).second);
}

/// The text of a value distinguishes it from the default, to the last bit, because ranks compare
/// the texts.
TEST(OptionTable, TextsTellValuesApart) {
  for (const char* text : {"mode=async",
                           "hold=promise",
                           "writers=each",
                           "writers=node",
                           "buffer=3",
                           "align=2",
                           "align=direct",
                           "fsync=off",
                           "journal=on",
                           "replace=on",
                           "trace-file=t",
                           "for=balanced",
                           "why=measured",
                           "target=size=7",
                           "target=psnr=80.00000000000001",
                           "lab.balance=paper",
                           "lab.record=x",
                           "lab.scheduler=johnson",
                           "lab.order=johnson",
                           "codec=deflate",
                           "codec=zstd,level=3",
                           "bound=none",
                           "bound=rel=0.0010000000000000002",
                           "guard=sign",
                           "earlier-loss=abs=0.01 then unknown",
                           "guard=region=0..16x*:0.0001",
                           "guard=threshold=0.10000000000000002",
                           "chunk=8388609",
                           "chunk=8x8",
                           "layout=dense",
                           "layout=arena:1.0000000000000002",
                           "layout=predictive:3:1",
                           "layout=hybrid:2",
                           "layout=hybrid:2:0.1",
                           "verify=off",
                           "verify=strict",
                           "fill=-0",
                           "allow-wide-bound=on",
                           "holes=on",
                           "over-time=on"}) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options(text, options).ok()) << text;
    EXPECT_NE(agreed_text(options, Door::steps), agreed_text(FileOptions(), Door::steps)) << text;
  }
  // Options of each rank, or of rank 0, are not compared.
  FileOptions own;
  ASSERT_TRUE(apply_file_options("threads=7,memory=1048577,plugin-path=/x,profile=/y", own).ok());
  EXPECT_EQ(agreed_text(own, Door::steps), agreed_text(FileOptions(), Door::steps));
}

/// Each error lists all values of a closed set and suggests the nearest one.
TEST(OptionTable, AMisspeltValueIsSuggested) {
  for (const auto& [text, meant] : {std::pair{"mode=asinc", "async"},
                                    {"hold=promis", "promise"},
                                    {"writers=noed", "node"},
                                    {"fsync=fasle", "false"},
                                    {"compatibility=evryone", "everyone"},
                                    {"attributes=al", "all"},
                                    {"for=spede", "speed"},
                                    {"why=mesured", "measured"},
                                    {"target=sise=2GB", "size"},
                                    {"lab.balance=papr", "paper"},
                                    {"bound=asb=1e-3", "abs"},
                                    {"bound=nome", "none"},
                                    {"guard=sgin", "sign"},
                                    {"guard=minmax+treshold=1", "threshold"},
                                    {"earlier-loss=unkown", "unknown"},
                                    {"layout=arena:storge", "storage"},
                                    {"verify=strikt", "strict"},
                                    {"covered=dorp", "drop"},
                                    {"cahce=1", ""},
                                    {"codec=trz,prest=fast", "preset"}}) {
    FileOptions options;
    const std::string message = apply_file_options(text, options).message();
    EXPECT_NE(message.find(*meant == 0 ? "unknown option \"cahce\""
                                       : "did you mean \"" + std::string(meant) + "\"?"),
              std::string::npos)
        << text << ": " << message;
  }
  FieldOptions field;
  field.layout = "danse";
  const std::string layout = make_layout(field.layout, field).status().message();
  EXPECT_NE(layout.find("claimed, arena"), std::string::npos) << layout;
  EXPECT_NE(layout.find("did you mean \"dense\"?"), std::string::npos) << layout;
}

TEST(OptionTable, TheCodecsThatHaveASettingAreNamed) {
  const auto message = [](const char* text) {
    FileOptions options;
    return apply_file_options(text, options).message();
  };
  EXPECT_NE(message("codec=deflate,preset=max").find("\"preset\" belongs to trz"),
            std::string::npos)
      << message("codec=deflate,preset=max");
  const auto made = [](const char* text) {
    FieldOptions options;
    EXPECT_TRUE(apply_field_options(text, options).ok());
    return make_codec({options.codec, options.codec_settings, DType::f32, {64}}).status().message();
  };
  EXPECT_NE(made("codec=tzr").find("did you mean \"trz\"?"), std::string::npos)
      << made("codec=tzr");
  for (const char* mode : {"abs", "rel", "pw_rel", "psnr"}) {  // Keywords of Python.
    const std::string text = std::string(mode) + "=1e-3";
    EXPECT_NE(
        message(text.c_str())
            .find("unknown option \"" + std::string(mode) + "\"; did you mean bound=" + text + "?"),
        std::string::npos)
        << message(text.c_str());
    FieldOptions field;
    EXPECT_NE(apply_field_options("codec=trz," + text, field).message().find("bound=" + text + "?"),
              std::string::npos);
  }
  EXPECT_NE(made("codec=trz,preset=defualt").find("did you mean \"default\"?"), std::string::npos)
      << made("codec=trz,preset=defualt");
  for (const CodecEntry* codec : codec_registry()) {
    if (codec->loss == Loss::unknown) continue;
    EXPECT_NE(made("codec=tzr").find(codec->name), std::string::npos) << codec->name;
  }
}

TEST(OptionTable, BlanksAroundNamesAndValuesAreIgnored) {
  FileOptions spaced;
  const Status of_spaced = apply_file_options(
      " mode = async , codec=trz, preset = fast,bound = abs = 1e-3, guard= sign + gradient = 2 ,"
      "chunk = 8 x 8,buffer = 8 MiB,layout = arena : 1.5, target = none ,, ",
      spaced);
  EXPECT_TRUE(of_spaced.ok()) << of_spaced.message();
  FileOptions plain;
  const Status of_plain = apply_file_options(
      "mode=async,codec=trz,preset=fast,bound=abs=1e-3,guard=sign+gradient=2,chunk=8x8,buffer=8MiB,"
      "layout=arena:1.5,target=none",
      plain);
  EXPECT_TRUE(of_plain.ok()) << of_plain.message();
  EXPECT_EQ(agreed_text(spaced, Door::steps), agreed_text(plain, Door::steps));
}

TEST(OptionTable, WhatAWriterDoesNotServeIsRefusedByName) {
  const auto refusal = [](const char* text, Door door) {
    FileOptions options;
    EXPECT_TRUE(apply_file_options(text, options).ok()) << text;
    const Status status = check_served(options, door);
    return status.ok() ? "served" : status.message();
  };
  for (const char* text : {"lab.order=johnson", "trace-file=x", "lab.record=x", "hold=promise",
                           "lab.balance=paper", "lab.scheduler=johnson", "writers=node"}) {
    const std::string name = std::string(text).substr(0, std::string(text).find('='));
    EXPECT_NE(refusal(text, Door::python).find("option " + name + "="), std::string::npos) << text;
    EXPECT_NE(refusal(text, Door::concat).find("option " + name + "="), std::string::npos) << text;
    EXPECT_EQ(refusal(text, Door::steps), "served");
  }
  EXPECT_EQ(refusal("mode=async", Door::hdf5), "served");
  EXPECT_NE(refusal("mode=async", Door::python).find("option mode="), std::string::npos);
  EXPECT_NE(refusal("mode=async", Door::concat).find("option mode="), std::string::npos);
  EXPECT_EQ(refusal("memory=64MB,layout=dense,fsync=off", Door::concat), "served");
  EXPECT_NE(refusal("bound=abs=1", Door::concat).find("option bound="), std::string::npos);
  EXPECT_EQ(refusal("mode=sync,lab.order=given,bound=abs=1,layout=arena", Door::pnetcdf), "served");
  EXPECT_EQ(refusal("codec=trz,preset=fast,bound=abs=1,guard=sign,chunk=1MiB,attributes=off",
                    Door::serial),
            "served");
  for (const char* text : {"layout=dense", "memory=64MB", "threads=2", "verify=on", "mode=async"}) {
    EXPECT_NE(
        refusal(text, Door::serial).find("not served by the serial HDF5 interface; it serves "),
        std::string::npos)
        << text;
  }
  FieldOptions field;
  ASSERT_TRUE(apply_field_options("bound=abs=1,covered=drop", field).ok());
  EXPECT_NE(check_served(field, Door::serial).message().find("option covered="), std::string::npos);
}

/// Equal decisions of all ranks pass. Different ones are reported by the next agreement on all
/// ranks, and the agreement after that is clean.
TEST(Decide, IsComparedByTheNextAgreement_3_ranks) {
  run_ranks(3, [](std::unique_ptr<Comm> comm) {
    comm->decide("field /a", "codec trz");
    EXPECT_TRUE(comm->agree(Status()).ok());
    comm->decide("field /a", "codec trz");
    comm->decide("field /b", comm->rank() == 2 ? "codec none" : "codec trz");
    const Status differs = comm->agree(Status());
    EXPECT_EQ(differs.code(), Code::disagreement);
    EXPECT_NE(differs.message().find("rank 2: "), std::string::npos) << differs.message();
    EXPECT_NE(differs.message().find("ranks disagree on field /b: rank 0 has codec trz, "),
              std::string::npos);
    EXPECT_NE(differs.message().find("this rank has codec none"), std::string::npos);
    EXPECT_TRUE(comm->agree(Status()).ok());
    // A decision that only one rank made; a failure has priority over it.
    if (comm->rank() == 1) comm->decide("field /c", "codec xor");
    EXPECT_EQ(comm->agree(Status()).code(), Code::disagreement);
    if (comm->rank() == 1) comm->decide("field /c", "codec xor");
    const Status failed =
        comm->agree(comm->rank() == 2 ? Status(Code::io_error, "gone") : Status());
    EXPECT_EQ(failed.code(), Code::io_error);
    EXPECT_TRUE(comm->agree(Status()).ok());
  });
}

TEST(OptionTable, AFillValueThatNoF64HoldsIsRefused) {
  for (const std::string text : {"9223372036854775807", "-9223372036854775806",
                                 "18446744073709551614", "9007199254740993"}) {
    FieldOptions options;
    const Status refused = apply_field_options("fill=" + text, options);
    EXPECT_EQ(refused.code(), Code::invalid_argument) << text;
    EXPECT_FALSE(options.fill_value.has_value()) << text;
  }
  for (const std::string text : {"9223372036854775808", "-999", "007", "-0", "1e20", "0.1"}) {
    FieldOptions options;
    EXPECT_TRUE(apply_field_options("fill=" + text, options).ok()) << text;
  }
}

}  // namespace
}  // namespace tailrace::test
