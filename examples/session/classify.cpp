// Run a compiled model from C++: every input is filled with ones, and four threads share a session.
//
//     smelt compile classifier.onnx --target c --dim B=1..16 --option name=classifier
//         --option project=session -o out
//     g++ -std=c++17 -Iout examples/session/classify.cpp -o classify -ldl -pthread
//     ./classify out/libclassifier.so 4
//
// The number is the size of dims that may differ from run to run.
#include "smelt_session.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// A model, its library, and one session of it.
class Session {
public:
    explicit Session(const std::string &path) : library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    {
        if (!library)
            throw std::runtime_error(dlerror());
        auto *find = reinterpret_cast<smelt_session_model_function *>(dlsym(library, "smelt_session_model"));
        if (!find)
            throw std::runtime_error(path + " is no library of a session");
        model = find();
        if (model->version != SMELT_SESSION_VERSION)
            throw std::runtime_error(path + " has sessions of another version");
        session = model->open();
        if (!session)
            throw std::bad_alloc();
    }

    ~Session() { model->close(session); }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    // The float outputs of a run on float inputs of ones whose open dims have the given size.
    std::vector<std::vector<float>> run(std::int64_t size) const
    {
        std::vector<smelt_tensor> inputs(model->inputs), outputs(model->outputs, smelt_tensor{});
        std::vector<std::vector<float>> data(model->inputs);
        for (int i = 0; i < model->inputs; ++i) {
            const smelt_port &port = model->input[i];
            std::size_t count = 1;
            inputs[i].type = port.type;
            inputs[i].rank = port.rank;
            for (int axis = 0; axis < port.rank; ++axis) {
                inputs[i].shape[axis] = port.shape[axis] < 0 ? size : port.shape[axis];
                count *= static_cast<std::size_t>(std::max<std::int64_t>(inputs[i].shape[axis], 0));
            }
            data[i].assign(count, 1.0f);
            inputs[i].data = data[i].data();
        }
        if (model->run(session, inputs.data(), outputs.data()) != SMELT_OK)
            throw std::runtime_error(model->message());
        std::vector<std::vector<float>> results;
        for (smelt_tensor &output : outputs) {
            const auto *begin = static_cast<const float *>(output.data);
            results.emplace_back(begin, begin + output.bytes / sizeof(float));
            model->release(&output);
        }
        return results;
    }

    const smelt_model *model = nullptr;

private:
    void *library;
    smelt_session *session = nullptr;
};

} // namespace

int main(int count, char **arguments)
{
    if (count != 3) {
        std::fprintf(stderr, "usage: classify LIBRARY SIZE\n");
        return 2;
    }
    try {
        const Session session(arguments[1]);
        const std::int64_t size = std::atoll(arguments[2]);
        const auto expected = session.run(size);
        std::vector<int> same(4, 0);
        std::vector<std::thread> threads;
        for (int &each : same)
            threads.emplace_back([&] {
                each = 1;
                for (int run = 0; run < 100; ++run)
                    each &= session.run(size) == expected;
            });
        for (std::thread &thread : threads)
            thread.join();
        for (int i = 0; i < session.model->outputs; ++i) {
            std::printf("%s:", session.model->output[i].name);
            for (const float value : expected[i])
                std::printf(" %g", static_cast<double>(value));
            std::printf("\n");
        }
        if (!std::all_of(same.begin(), same.end(), [](int each) { return each == 1; })) {
            std::fprintf(stderr, "threads got other results\n");
            return 1;
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
