// Job of tests/test_library_choices.py: calls an all_reduce of oneCCL for each size in bytes.
// Usage: oneccl_job KVS SIZE... with a file KVS by which the processes find each other.
#include <oneapi/ccl.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

int main(int argc, char **argv)
{
    int rank = atoi(getenv("PMI_RANK")), ranks = atoi(getenv("PMI_SIZE"));
    std::string file = argv[1];
    ccl::init();
    ccl::shared_ptr_class<ccl::kvs> kvs;
    if (rank == 0) {
        kvs = ccl::create_main_kvs();
        auto address = kvs->get_address();
        std::ofstream(file + ".part", std::ios::binary).write(&address[0], address.size());
        rename((file + ".part").c_str(), file.c_str());
    } else {
        ccl::kvs::address_type address;
        while (access(file.c_str(), R_OK))
            usleep(10000);
        std::ifstream(file, std::ios::binary).read(&address[0], address.size());
        kvs = ccl::create_kvs(address);
    }
    auto world = ccl::create_communicator(ranks, rank, kvs);
    for (int at = 2; at < argc; at++) {
        size_t count = atol(argv[at]) / sizeof(int);
        std::vector<int> given(count, rank + 1), taken(count), all(count * ranks);
        std::vector<size_t> counts(ranks, count);
        ccl::allreduce(given.data(), taken.data(), count, ccl::reduction::sum, world).wait();
        for (int sum : taken)
            if (sum != ranks * (ranks + 1) / 2)
                return 1;
        ccl::allgatherv(given.data(), count, all.data(), counts, world).wait();
        for (size_t place = 0; place < all.size(); place++)
            if (all[place] != int(place / count) + 1)
                return 1;
    }
    return 0;
}
