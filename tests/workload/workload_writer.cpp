// The workload's performer for the C++ API. The ranks of a communicator put fields over time and
// fields of one step in boxes, in any mode; with --fortran through the Fortran module. The judge's
// side is StepsDoor in doors.py.
//
// Rank 0 reads requests from the socket that TAILRACE_WORKLOAD_SOCKET names, one per line, words
// separated by blanks, and broadcasts them; "-" is an empty word. After all ranks have performed
// the request, rank 0 answers with a line of JSON:
//
//   ID begin PATH [FAULT]                      For tests/campaign/recorder.c.
//   ID open w|a OPTIONS
//   ID step|flush|close|abort|crash|reset
//   ID var PATH DTYPE OPTIONS EXTENT...
//   ID known PATH DTYPE OPTIONS EXTENT...      A field of an earlier job.
//   ID put PATH RANK STYLE N START...(N) COUNT...(N) HEX
//   ID badput PATH RANK                        Beyond the field's end.
//   ID read PATH N [START...(N) COUNT...(N) STRIDE...(N)] for each rank.
//   ID attr OBJECT NAME text HEX | i8|u8|f8 NUMBER...

#include <dlfcn.h>
#include <mpi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tailrace/reader.hpp>
#include <tailrace/tailrace.hpp>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::string>;

/// Exchanges lines with the judge.
class Channel {
 public:
  explicit Channel(const char* path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(socket_, generic, sizeof(address)) != 0) throw std::runtime_error("no judge");
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { ::close(socket_); }

  /// The next line; nullopt after the judge has closed the connection.
  std::optional<std::string> receive() {
    std::size_t end = 0;
    while ((end = waiting_.find('\n')) == std::string::npos) {
      std::array<char, 65536> part{};
      const ssize_t n = ::read(socket_, part.data(), part.size());
      if (n <= 0) return std::nullopt;
      waiting_.append(part.data(), static_cast<std::size_t>(n));
    }
    std::string line = waiting_.substr(0, end);
    waiting_.erase(0, end + 1);
    return line;
  }
  void send(const std::string& line) {
    for (std::size_t at = 0; at < line.size();) {
      const ssize_t n = ::write(socket_, line.data() + at, line.size() - at);
      if (n <= 0) throw std::runtime_error("the judge has gone");
      at += static_cast<std::size_t>(n);
    }
  }

 private:
  int socket_;
  std::string waiting_;
};

std::string quoted(const std::string& text) {
  std::string found = "\"";
  for (const char c : text) {
    std::array<char, 8> code{};
    if (c == '"' || c == '\\') {
      found += '\\';
      found += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
      found += code.data();
    } else {
      found += c;
    }
  }
  return found + "\"";
}

std::string to_hex(const Bytes& bytes) {
  static constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[static_cast<unsigned>(byte) >> 4U];
    text += digits[static_cast<unsigned>(byte) & 15U];
  }
  return text;
}

Bytes from_hex(const std::string& text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  }
  return bytes;
}

std::string option_text(const std::string& word) { return word == "-" ? "" : word; }

tailrace_dtype dtype_named(const std::string& name) {
  static const std::map<std::string, tailrace_dtype> types = {
      {"f4", TAILRACE_F32}, {"f8", TAILRACE_F64}, {"i1", TAILRACE_I8}, {"i2", TAILRACE_I16},
      {"i4", TAILRACE_I32}, {"i8", TAILRACE_I64}, {"u1", TAILRACE_U8}, {"u2", TAILRACE_U16},
      {"u4", TAILRACE_U32}, {"u8", TAILRACE_U64}};
  return types.at(name);
}

/// Performs one rank's part of each request with the C++ API.
class Performer {
 public:
  explicit Performer(int rank) : rank_(rank) {}
  Performer(const Performer&) = delete;
  Performer& operator=(const Performer&) = delete;
  virtual ~Performer() = default;

  void perform(const Words& words) {
    const std::string& verb = words.at(1);
    read_.clear();
    if (verb == "begin") {
      path_ = words.at(2);
      definitions_.clear();
      arm(words.size() > 3 ? words[3].c_str() : nullptr);
    } else if (verb == "reset" || verb == "abort") {
      drop();
    } else if (verb == "open") {
      open(words.at(2), option_text(words.at(3)));
    } else if (verb == "var" || verb == "known") {
      note_definition(words);
      if (verb == "var") define(words.at(2));
    } else if (verb == "put") {
      put(words);
    } else if (verb == "badput") {
      put_beyond(words);
    } else if (verb == "read") {
      read_slab(words);
    } else if (verb == "attr") {
      set_attribute(words);
    } else if (verb == "step" || verb == "flush") {
      end_step(verb == "flush");
    } else if (verb == "close") {
      close();
    } else if (verb == "crash") {
      std::raise(SIGSEGV);
    } else {
      throw std::invalid_argument("request " + verb);
    }
  }

  /// This rank's values of the last "read".
  const Bytes& values_read() const { return read_; }

 protected:
  struct Definition {
    tailrace_dtype dtype;
    tailrace::Shape shape;
    std::string options;
  };

  virtual void close() {
    fields_.clear();
    tailrace::File closing = std::move(*file_);
    file_.reset();
    closing.close();
    buffers_.clear();
  }

  virtual void drop() {
    fields_.clear();
    file_.reset();
    buffers_.clear();
  }

  virtual void open(const std::string& mode, const std::string& options) {
    const tailrace::Comm comm = tailrace::mpi(MPI_COMM_WORLD);
    promise_ = options.find("hold=promise") != std::string::npos;
    if (mode == "a") {
      file_ = tailrace::File::open(path_, comm, options);
    } else {
      definitions_.clear();
      file_ = tailrace::File::create(path_, comm,
                                     options + (options.empty() ? "" : ",") + "replace=on");
    }
  }

  void note_definition(const Words& words) {
    Definition made{dtype_named(words.at(3)), {}, option_text(words.at(4))};
    for (std::size_t i = 5; i < words.size(); ++i) made.shape.push_back(std::stoull(words[i]));
    definitions_[words.at(2)] = made;
  }

  virtual void define(const std::string& path) { field(path); }

  /// Defines the field again before its first put if it belongs to an opened file.
  const tailrace::Field<std::byte>& field(const std::string& path) {
    const auto found = fields_.find(path);
    if (found != fields_.end()) return found->second;
    const Definition& as = definitions_.at(path);
    return fields_.emplace(path, file_->define(path, as.dtype, as.shape, as.options)).first->second;
  }

  void put(const Words& words) {
    define(words.at(2));
    if (std::stoi(words.at(3)) != rank_) return;
    const std::string& style = words.at(4);
    const std::size_t n = std::stoull(words.at(5));
    tailrace::Box box;
    for (std::size_t d = 0; d < n; ++d) {
      box.start.push_back(std::stoull(words.at(6 + d)));
      box.count.push_back(std::stoull(words.at(6 + n + d)));
    }
    put_box(words[2], style, box, from_hex(option_text(words.at(6 + 2 * n))));
  }

  virtual void put_box(const std::string& path, const std::string& style, const tailrace::Box& box,
                       const Bytes& values) {
    const tailrace::Field<std::byte>& target = field(path);
    const std::size_t element = tailrace_dtype_bytes(definitions_.at(path).dtype);
    if (style == "strided" || style == "fortran") {
      put_strided(target, box, values, element, style == "fortran");
    } else if (style == "copy") {
      target.put_copy(box, values);
    } else {  // Kept until the step ends; with hold=promise, until the next step ends.
      buffers_.push_back({n_steps_, values});
      target.put(box, buffers_.back().values);
    }
  }

  void put_beyond(const Words& words) {
    define(words.at(2));
    if (std::stoi(words.at(3)) != rank_) return;
    const Definition& as = definitions_.at(words[2]);
    tailrace::Box box;
    box.start.assign(as.shape.size(), 0);
    box.count.assign(as.shape.size(), 1);
    box.start.back() = as.shape.back() + 5;
    put_box(words[2], "copy", box, Bytes(tailrace_dtype_bytes(as.dtype)));
  }

  /// Reads this rank's slab with a Reader that all ranks open and close.
  void read_slab(const Words& words) {
    const std::size_t n = std::stoull(words.at(3));
    const std::size_t first = 4 + 3 * n * static_cast<std::size_t>(rank_);
    tailrace::Selection slab;
    for (std::size_t d = 0; d < n; ++d) {
      slab.start.push_back(std::stoull(words.at(first + d)));
      slab.count.push_back(std::stoull(words.at(first + n + d)));
      slab.stride.push_back(std::stoull(words.at(first + 2 * n + d)));
    }
    tailrace::Reader reader = tailrace::Reader::open(path_, tailrace::mpi(MPI_COMM_WORLD));
    const std::size_t element = reader.dataset(reader.find(words.at(2))).element_bytes;
    read_.resize(slab.n_elements() * element);
    reader.read_all(words[2], slab, std::span(read_));
    reader.close();
  }

  /// Arms the recorder, if it is preloaded, with a fault, or with none.
  static void arm(const char* fault) {
    void* const found = dlsym(RTLD_DEFAULT, "campaign_set_fault");
    if (found == nullptr) return;
    void (*set_fault)(const char*) = nullptr;
    std::memcpy(&set_fault, &found, sizeof set_fault);
    set_fault(fault);
  }

  /// Puts the box from an array with gaps, or with the first index varying fastest.
  static void put_strided(const tailrace::Field<std::byte>& target, const tailrace::Box& box,
                          const Bytes& values, std::size_t element, bool fortran) {
    const std::size_t n = box.count.size();
    tailrace::Shape dense(n, 1);
    tailrace::Shape strides(n, 1);
    for (std::size_t d = n; d-- > 1;) dense[d - 1] = dense[d] * box.count[d];
    if (fortran) {
      for (std::size_t d = 1; d < n; ++d) strides[d] = strides[d - 1] * box.count[d - 1];
    } else {
      for (std::size_t d = 0; d < n; ++d) strides[d] = 3 * dense[d];
    }
    Bytes loose(values.size() * (fortran ? 1 : 3) + element);
    for (std::size_t i = 0; i < values.size() / element; ++i) {
      std::size_t to = 0;
      for (std::size_t d = 0; d < n; ++d) to += i / dense[d] % box.count[d] * strides[d];
      std::memcpy(&loose[to * element], &values[i * element], element);
    }
    target.put_copy(box, loose, strides);
  }

  void set_attribute(const Words& words) {
    const std::string& object = words.at(2);
    const std::string& name = words.at(3);
    const std::string& kind = words.at(4);
    if (kind == "text") {
      const Bytes raw = from_hex(option_text(words.at(5)));
      const std::string_view text(reinterpret_cast<const char*>(raw.data()), raw.size());
      file_->set_attribute(object, name, text);
      return;
    }
    std::vector<std::int64_t> signed_numbers;
    std::vector<std::uint64_t> unsigned_numbers;
    std::vector<double> real_numbers;
    for (std::size_t i = 5; i < words.size(); ++i) {
      if (kind == "i8") signed_numbers.push_back(std::stoll(words[i]));
      if (kind == "u8") unsigned_numbers.push_back(std::stoull(words[i]));
      if (kind == "f8") real_numbers.push_back(std::strtod(words[i].c_str(), nullptr));
    }
    if (kind == "i8") set_numbers(object, name, signed_numbers);
    if (kind == "u8") file_->set_attribute(object, name, unsigned_numbers);
    if (kind == "f8") set_numbers(object, name, real_numbers);
  }

  virtual void set_numbers(const std::string& object, const std::string& name,
                           const std::vector<std::int64_t>& numbers) {
    file_->set_attribute(object, name, numbers);
  }
  virtual void set_numbers(const std::string& object, const std::string& name,
                           const std::vector<double>& numbers) {
    file_->set_attribute(object, name, numbers);
  }

  virtual void end_step(bool wait) {
    file_->end_step();
    ++n_steps_;
    release(promise_ ? 1 : 0);
    { const auto scope = file_->compute(); }
    file_->idle(0.0005);
    if (!wait) return;
    file_->wait();
    release(0);
  }

  /// Overwrites and frees the values put before the last `n` steps: the library may not read them.
  void release(std::uint64_t n) {
    while (!buffers_.empty() && buffers_.front().step + n < n_steps_) {
      Bytes& old = buffers_.front().values;
      std::fill(old.begin(), old.end(), std::byte{0x5a});
      buffers_.pop_front();
    }
  }

  struct Buffer {
    std::uint64_t step;
    Bytes values;
  };

  int rank_;
  std::string path_;
  std::map<std::string, Definition> definitions_;

 private:
  bool promise_ = false;
  std::uint64_t n_steps_ = 0;
  std::map<std::string, tailrace::Field<std::byte>> fields_;
  std::list<Buffer> buffers_;
  std::optional<tailrace::File> file_;
  Bytes read_;
};

#ifdef WORKLOAD_FORTRAN
/// Buffer for the text of an error.
using Text = std::array<char, 512>;

// workload_fortran.f90.
extern "C" {
int fortran_open(const char* path, int opens, int comm, const char* options, char* text);
int fortran_define(const char* path, int dtype, int n, const std::int64_t* shape,
                   const char* options, int* number, char* text);
int fortran_put(int number, int dtype, int n, const std::int64_t* start, const std::int64_t* count,
                const void* values, char* text);
int fortran_attribute(const char* object, const char* name, int n, const std::int64_t* integers,
                      const double* reals, char* text);
int fortran_end_step(int waits, char* text);
int fortran_close(char* text);
void fortran_abandon();
}

/// Performs requests with the Fortran module.
class FortranPerformer final : public Performer {
 public:
  using Performer::Performer;

 private:
  static void check(int code, const Text& text) {
    if (code != TAILRACE_OK) throw tailrace::Error(static_cast<tailrace_error>(code), text.data());
  }
  static std::vector<std::int64_t> extents(const tailrace::Shape& shape) {
    return {shape.begin(), shape.end()};
  }

  void open(const std::string& mode, const std::string& options) override {
    numbers_.clear();
    if (mode != "a") definitions_.clear();
    Text text{};
    check(fortran_open(path_.c_str(), mode == "a" ? 1 : 0, MPI_Comm_c2f(MPI_COMM_WORLD),
                       options.c_str(), text.data()),
          text);
  }
  void define(const std::string& path) override {
    if (numbers_.contains(path)) return;
    const Definition& as = definitions_.at(path);
    const std::vector<std::int64_t> shape = extents(as.shape);
    Text text{};
    int number = 0;
    check(fortran_define(path.c_str(), as.dtype, static_cast<int>(shape.size()), shape.data(),
                         as.options.c_str(), &number, text.data()),
          text);
    numbers_[path] = number;
  }
  void put_box(const std::string& path, const std::string&, const tailrace::Box& box,
               const Bytes& values) override {
    const std::vector<std::int64_t> start = extents(box.start);
    const std::vector<std::int64_t> count = extents(box.count);
    Text text{};
    check(
        fortran_put(numbers_.at(path), definitions_.at(path).dtype, static_cast<int>(start.size()),
                    start.data(), count.data(), values.data(), text.data()),
        text);
  }
  void set_numbers(const std::string& object, const std::string& name,
                   const std::vector<std::int64_t>& numbers) override {
    Text text{};
    check(fortran_attribute(object.c_str(), name.c_str(), static_cast<int>(numbers.size()),
                            numbers.data(), nullptr, text.data()),
          text);
  }
  void set_numbers(const std::string& object, const std::string& name,
                   const std::vector<double>& numbers) override {
    Text text{};
    check(fortran_attribute(object.c_str(), name.c_str(), static_cast<int>(numbers.size()), nullptr,
                            numbers.data(), text.data()),
          text);
  }
  void end_step(bool wait) override {
    Text text{};
    check(fortran_end_step(wait ? 1 : 0, text.data()), text);
  }
  void close() override {
    Text text{};
    check(fortran_close(text.data()), text);
  }
  void drop() override { fortran_abandon(); }

  std::map<std::string, int> numbers_;
};
#endif

std::unique_ptr<Performer> make_performer(bool fortran, int rank) {
#ifdef WORKLOAD_FORTRAN
  if (fortran) return std::make_unique<FortranPerformer>(rank);
#endif
  if (fortran) throw std::runtime_error("built without Fortran");
  return std::make_unique<Performer>(rank);
}

/// Shares the next request with all ranks. Waiting ranks sleep; MPI would poll.
std::optional<std::string> share(MPI_Comm comm, int rank, int n_ranks, Channel* channel) {
  std::optional<std::string> line;
  if (rank == 0) {
    line = channel->receive();
    const std::string text = line ? *line : "";
    for (int to = 1; to < n_ranks; ++to) {
      MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, 0, comm);
    }
    return line;
  }
  int is_there = 0;
  MPI_Status status;
  for (int n_tries = 0;; ++n_tries) {
    MPI_Iprobe(0, 0, comm, &is_there, &status);
    if (is_there != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + std::min(49, n_tries / 8)));
  }
  int n = 0;
  MPI_Get_count(&status, MPI_CHAR, &n);
  std::string text(static_cast<std::size_t>(n), ' ');
  MPI_Recv(text.data(), n, MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE);
  if (n > 0) line = text;
  return line;
}

/// This rank's outcome of a request: empty, or an error's name and text.
std::string answer_of(Performer& performer, const Words& words) {
  try {
    performer.perform(words);
  } catch (const tailrace::Error& error) {
    return std::string(error.name()) + ": " + error.what();
  } catch (const std::exception& error) {
    return std::string("performer: ") + error.what();
  }
  return "";
}

/// All ranks' answers, at rank 0.
std::vector<std::string> gather(MPI_Comm comm, int rank, int n_ranks, const std::string& mine) {
  std::vector<std::string> all = {mine};
  if (rank != 0) {
    MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, 0, 1, comm);
    return all;
  }
  for (int from = 1; from < n_ranks; ++from) {
    MPI_Status status;
    int n = 0;
    MPI_Probe(from, 1, comm, &status);
    MPI_Get_count(&status, MPI_CHAR, &n);
    std::string text(static_cast<std::size_t>(n), ' ');
    MPI_Recv(text.data(), n, MPI_CHAR, from, 1, comm, MPI_STATUS_IGNORE);
    all.push_back(text);
  }
  return all;
}

void serve(MPI_Comm comm, int rank, int n_ranks, bool fortran) {
  std::unique_ptr<Channel> channel;
  if (rank == 0) channel = std::make_unique<Channel>(std::getenv("TAILRACE_WORKLOAD_SOCKET"));
  const std::unique_ptr<Performer> made = make_performer(fortran, rank);
  Performer& performer = *made;
  while (const std::optional<std::string> line = share(comm, rank, n_ranks, channel.get())) {
    std::istringstream stream(*line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    const auto answers = gather(comm, rank, n_ranks, answer_of(performer, words));
    const bool reads = words.at(1) == "read";
    const auto slabs = gather(comm, rank, n_ranks, reads ? to_hex(performer.values_read()) : "");
    if (rank != 0) continue;
    const bool own = words[1] == "put" || words[1] == "badput";
    const std::string& mine = answers.at(own ? std::stoull(words.at(3)) : 0);
    std::string error = mine;
    for (int r = 0; r < n_ranks; ++r) {
      const std::string& other = answers[static_cast<std::size_t>(r)];
      const bool differs = own ? mine.empty() && !other.empty() : other != mine;
      if (differs) error = "RanksDiffer: " + mine + " / " + other;
    }
    std::string what = "\"ok\": true";
    for (int r = 0; reads && r < n_ranks; ++r) {
      what += (r == 0 ? ", \"slabs\": [\"" : "\", \"") + slabs[static_cast<std::size_t>(r)];
    }
    if (reads) what += "\"]";
    if (!error.empty()) {
      what =
          "\"error\": " + quoted(error.substr(0, error.find(':'))) + ", \"text\": " + quoted(error);
    }
    channel->send("{\"id\": " + words.at(0) + ", " + what + "}\n");
  }
}

}  // namespace

int main(int n_words, char** words) {
  MPI_Init(&n_words, &words);
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n_ranks);
  serve(comm, rank, n_ranks, n_words > 1 && std::strcmp(words[1], "--fortran") == 0);
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
