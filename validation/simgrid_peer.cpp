// Runs one case under SimGrid's plain fluid model and prints when everything ended, in seconds.
//
//     simgrid_peer PLATFORM.xml CASE
//
// A case is a text of lines. Either chains of flows from one host, each flow after the one before,
//
//     chain SOURCE START_PS
//     flow DESTINATION BYTES
//
// or messages in steps, sent and received by one actor per rank, which goes on when its messages of a
// step have ended; a message moves when both of its ends are there,
//
//     message STEP SOURCE DESTINATION BYTES
//
// or one of the patterns of such steps, BLOCK bytes per rank: `pattern ring|shift|doubling|pairwise
// RANKS BLOCK`. Hosts are called `h0`, `h1`, ... The first line printed has the seconds of the
// processor for building the platform and for running, and the peak of memory in MB; then one line
// for each flow (chains, in order) or each rank (steps), and the end.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

namespace sg4 = simgrid::s4u;

struct Flow {
  unsigned destination;
  double bytes;
  double end;
};

struct Chain {
  unsigned source;
  double start;
  std::vector<Flow> flows;
};

struct Message {
  unsigned source;
  unsigned destination;
  double bytes;
};

static sg4::Host* host(unsigned rank) { return sg4::Host::by_name("h" + std::to_string(rank)); }

static void run_chain(Chain* chain)
{
  sg4::this_actor::sleep_until(chain->start);
  for (auto& flow : chain->flows) {
    sg4::Comm::sendto(host(chain->source), host(flow.destination), static_cast<uint64_t>(flow.bytes));
    flow.end = sg4::Engine::get_clock();
  }
}

static sg4::Mailbox* between(unsigned source, unsigned destination)
{
  return sg4::Mailbox::by_name(std::to_string(source) + ">" + std::to_string(destination));
}

static char content;

// What a rank sends and receives in each step.
static void run_rank(unsigned rank, const std::map<unsigned, std::vector<Message>>* steps, double* end)
{
  for (const auto& [step, messages] : *steps) {
    std::vector<sg4::CommPtr> under_way;
    std::vector<char*> received(messages.size());
    for (std::size_t index = 0; index < messages.size(); index++) {
      const auto& message = messages[index];
      if (message.source == rank)
        under_way.push_back(between(rank, message.destination)->put_async(&content, message.bytes));
      else
        under_way.push_back(between(message.source, rank)->get_async<char>(&received[index]));
    }
    for (auto& comm : under_way)
      comm->wait();
  }
  *end = sg4::Engine::get_clock();
}

static void run_pattern(const std::string* name, unsigned rank, unsigned ranks, double block, double* end)
{
  unsigned steps = ranks - 1;
  if (*name == "doubling")
    for (steps = 0; (1U << steps) < ranks; steps++)
      ;
  for (unsigned step = 0; step < steps; step++) {
    unsigned to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    double bytes = block;
    if (*name == "shift") {
      to = (rank + step + 1) % ranks;
      from = (rank + ranks - step - 1) % ranks;
    } else if (*name == "pairwise") {
      to = from = rank ^ (step + 1);
    } else if (*name == "doubling") {
      to = from = rank ^ (1U << step);
      bytes = block * (1U << step);
    }
    char* received;
    auto sent = between(rank, to)->put_async(&content, static_cast<uint64_t>(bytes));
    auto got = between(from, rank)->get_async<char>(&received);
    sent->wait();
    got->wait();
  }
  *end = sg4::Engine::get_clock();
}

static double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int main(int argc, char** argv)
{
  if (argc > 1 && std::string(argv[1]) == "--version") {
    std::printf("%d.%d\n", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    return 0;
  }
  sg4::Engine engine(&argc, argv);
  // The plain model: no factors, no weights by rate, no window, nothing on the way back.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/bandwidth-factor:1");
  sg4::Engine::set_config("network/latency-factor:1");
  sg4::Engine::set_config("network/weight-S:0");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/crosstraffic:0");
#if SIMGRID_VERSION_MAJOR >= 4
  sg4::Engine::set_config("precision/timing:1e-12");
#else
  sg4::Engine::set_config("surf/precision:1e-12");
#endif
  sg4::Engine::set_config("contexts/stack-size:128");
  sg4::Engine::set_config("contexts/guard-size:0");
  if (argc != 3) {
    std::fprintf(stderr, "usage: simgrid_peer PLATFORM.xml CASE\n");
    return 2;
  }
  double begun = processor_seconds();
  engine.load_platform(argv[1]);
  double built = processor_seconds();

  std::vector<Chain> chains;
  std::map<unsigned, std::map<unsigned, std::vector<Message>>> by_rank;
  std::string pattern;
  unsigned ranks = 0;
  double block = 0;
  std::ifstream file(argv[2]);
  for (std::string line, word; std::getline(file, line);) {
    std::istringstream words(line);
    words >> word;
    if (word == "chain") {
      Chain chain;
      double start;
      words >> chain.source >> start;
      chain.start = start * 1e-12;
      chains.push_back(chain);
    } else if (word == "flow") {
      Flow flow{0, 0, 0};
      words >> flow.destination >> flow.bytes;
      chains.back().flows.push_back(flow);
    } else if (word == "message") {
      unsigned step;
      Message message;
      words >> step >> message.source >> message.destination >> message.bytes;
      by_rank[message.source][step].push_back(message);
      by_rank[message.destination][step].push_back(message);
    } else if (word == "pattern") {
      words >> pattern >> ranks >> block;
    }
  }
  std::vector<double> ends(std::max<std::size_t>(ranks, by_rank.empty() ? 0 : by_rank.rbegin()->first + 1));
  for (auto& chain : chains)
    sg4::Actor::create("chain", host(chain.source), run_chain, &chain);
  for (auto& [rank, steps] : by_rank)
    sg4::Actor::create("rank", host(rank), run_rank, rank, &steps, &ends[rank]);
  for (unsigned rank = 0; rank < ranks; rank++)
    sg4::Actor::create("rank", host(rank), run_pattern, &pattern, rank, ranks, block, &ends[rank]);
  double read = processor_seconds();
  engine.run();
  double run = processor_seconds();

  rusage used;
  getrusage(RUSAGE_SELF, &used);
  std::printf("used %.6f %.6f %.1f\n", built - begun, run - read, used.ru_maxrss / 1024.0);
  for (const auto& chain : chains)
    for (const auto& flow : chain.flows)
      std::printf("%.15g\n", flow.end);
  for (double end : ends)
    std::printf("%.15g\n", end);
  std::printf("end %.15g\n", sg4::Engine::get_clock());
  return 0;
}
