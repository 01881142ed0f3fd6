/* Sends prepared requests repeatedly, a fixed number in flight on each connection.
 *
 * generator [-g GREETING] PORT DEPTH SECONDS FILE...     one connection for each FILE, which contains
 * one framed request. GREETING is a file of framed requests that each connection sends first, one
 * after the response to another. Prints one JSON object: responses, their rate, latency percentiles in microseconds, bytes
 * in and out. One thread, one epoll; bench/load.py compiles and runs it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, READ_BYTES = 1 << 20, BUCKETS = 1 << 20 };

struct lane {
    int fd;
    const char *request;
    size_t request_bytes;
    uint64_t sent_at[DEPTH_MAX];
    unsigned sent, answered;
    unsigned char head[4];
    unsigned head_bytes;
    size_t left;
};

static char buffer[READ_BYTES];
/* Latencies by the microsecond; those above a second are counted in the last one. */
static uint32_t buckets[BUCKETS];
static uint64_t answers, bytes_in, bytes_out;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "closed by the broker");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void load_request(struct lane *lane, const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status)) fail(path);
    char *bytes = malloc((size_t)status.st_size);
    if (!bytes || read(fd, bytes, (size_t)status.st_size) != status.st_size) fail(path);
    close(fd);
    lane->request = bytes;
    lane->request_bytes = (size_t)status.st_size;
}

static void connect_lane(struct lane *lane, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    lane->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (lane->fd < 0) fail("socket");
    if (connect(lane->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(lane->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void send_bytes(int fd, const char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = send(fd, bytes + done, size - done, 0);
        if (count < 0) fail("send");
        done += (size_t)count;
    }
}

static void send_request(struct lane *lane) {
    lane->sent_at[lane->sent++ % DEPTH_MAX] = now_ns();
    send_bytes(lane->fd, lane->request, lane->request_bytes);
    bytes_out += lane->request_bytes;
}

static size_t frame_bytes(const char *bytes) {
    uint32_t size;
    memcpy(&size, bytes, 4);
    return 4 + ntohl(size);
}

/* Send the requests of a greeting, and wait for the response to each of them. */
static void greet(int fd, const struct lane *greeting) {
    for (size_t at = 0; at < greeting->request_bytes;) {
        size_t size = frame_bytes(greeting->request + at);
        send_bytes(fd, greeting->request + at, size);
        at += size;
        errno = 0;
        if (recv(fd, buffer, 4, MSG_WAITALL) != 4) fail("greeting");
        size_t left = frame_bytes(buffer) - 4;
        if (left > READ_BYTES || recv(fd, buffer, left, MSG_WAITALL) != (ssize_t)left) fail("greeting");
    }
}

static void count_answer(struct lane *lane) {
    uint64_t micros = (now_ns() - lane->sent_at[lane->answered++ % DEPTH_MAX]) / 1000;
    buckets[micros < BUCKETS ? micros : BUCKETS - 1]++;
    answers++;
}

/* Read the available bytes; return the number of completed responses. */
static unsigned receive(struct lane *lane) {
    unsigned completed = 0;
    errno = 0;
    ssize_t count = recv(lane->fd, buffer, sizeof buffer, 0);
    if (count <= 0) fail("recv");
    bytes_in += (uint64_t)count;
    for (size_t position = 0; position < (size_t)count;) {
        if (lane->left) {
            size_t step = (size_t)count - position;
            if (step > lane->left) step = lane->left;
            lane->left -= step;
            position += step;
            if (!lane->left) completed++;
            continue;
        }
        lane->head[lane->head_bytes++] = (unsigned char)buffer[position++];
        if (lane->head_bytes == 4) {
            uint32_t size;
            memcpy(&size, lane->head, 4);
            lane->left = ntohl(size);
            lane->head_bytes = 0;
        }
    }
    return completed;
}

static double percentile(double part) {
    uint64_t wanted = (uint64_t)((double)answers * part), seen = 0;
    for (unsigned micros = 0; micros < BUCKETS; micros++) {
        seen += buckets[micros];
        if (seen > wanted) return micros + 0.5;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct lane greeting = {0};
    if (argc > 2 && !strcmp(argv[1], "-g")) {
        load_request(&greeting, argv[2]);
        argc -= 2, argv += 2;
    }
    if (argc < 5) return fprintf(stderr, "generator [-g GREETING] PORT DEPTH SECONDS FILE...\n"), 2;
    int port = atoi(argv[1]), depth = atoi(argv[2]), lanes_count = argc - 4;
    if (depth < 1 || depth > DEPTH_MAX) return fprintf(stderr, "DEPTH: 1 to 64\n"), 2;
    struct lane *lanes = calloc((size_t)lanes_count, sizeof *lanes);
    int poll = epoll_create1(0);
    for (int number = 0; number < lanes_count; number++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lanes[number]};
        load_request(&lanes[number], argv[4 + number]);
        connect_lane(&lanes[number], port);
        greet(lanes[number].fd, &greeting);
        epoll_ctl(poll, EPOLL_CTL_ADD, lanes[number].fd, &event);
    }
    uint64_t begin = now_ns(), end = begin + (uint64_t)(atof(argv[3]) * 1e9);
    for (int number = 0; number < lanes_count; number++)
        for (int sent = 0; sent < depth; sent++) send_request(&lanes[number]);
    while (now_ns() < end) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, 1000);
        for (int number = 0; number < ready; number++) {
            struct lane *lane = events[number].data.ptr;
            for (unsigned left = receive(lane); left; left--) {
                count_answer(lane);
                send_request(lane);
            }
        }
    }
    double elapsed = (double)(now_ns() - begin) / 1e9;
    printf("{\"requests\": %llu, \"requests_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"sent_mb_s\": %.2f, \"received_mb_s\": %.2f}\n",
           (unsigned long long)answers, (double)answers / elapsed, percentile(0.5),
           percentile(0.99), (double)bytes_out / elapsed / 1e6, (double)bytes_in / elapsed / 1e6);
    return 0;
}
