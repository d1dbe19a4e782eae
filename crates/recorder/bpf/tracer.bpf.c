// SPDX-License-Identifier: Apache-2.0
// Programs that record threads, calls and requests. `make bpf` compiles them into tracer.bpf.o, which
// the recorder loads; src/tracer/kernel.rs declares the other side of every map and record.
//
// Assumptions: a kernel of 5.15 or later with BTF, on 64 bits. Programs are attached for a burst; what a thread does that is
// not followed costs it a look at one byte. Calls come from sys_enter and sys_exit, which make every call of the machine
// take a longer way: programs at the functions themselves (fentry) would not, and locked-down kernels refuse those.
//
// A record is claimed by an atomic increment of its core's position, filled, and completed by its sequence number. So an
// interrupt may claim the next one in between; the reader waits for the earlier one. A full ring drops the newest records
// and counts them.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define READ(value) (*(const volatile typeof(value) *)&(value))

// Helpers of the kernel, by its numbers (include/uapi/linux/bpf.h).
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_probe_read_user)(void *to, u32 bytes, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static long (*bpf_probe_read_user_str)(void *to, u32 bytes, const void *from) = (void *)114;
static long (*bpf_probe_read_kernel_str)(void *to, u32 bytes, const void *from) = (void *)115;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *room, u64 flags) = (void *)132;
static void *(*bpf_get_current_task_btf)(void) = (void *)158;

// Types of the kernel: the loader finds where each field lies in the one that runs.
#define KERNEL __attribute__((preserve_access_index))
#define EXISTS(field) __builtin_preserve_field_info(field, 2)
#define VALUE(name) __builtin_preserve_enum_value(*(enum req_flag_bits *)name, 1)

// Constants of the kernel.
#define AT_FDCWD (-100)
#define WAKE_NOBODY 1
#define SECTOR_BYTES 512
#define SAME_PROCESS 0x10000 // CLONE_THREAD
#define COMPAT 2 // TS_COMPAT
// include/linux/sched.h, and what tracepoints make of it.
#define IDLE 0x402
#define REPORTED 0x7f
#define REPORTED_IDLE 0x80
#define PREEMPTED 0x100
// A thread's flags: the kernel's own, and one that works for an io_uring.
#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x00000010

struct thread_info {
    u32 cpu;
    u32 status;
} KERNEL;

struct task_struct {
    struct thread_info thread_info;
    u32 __state;
    u32 flags;
    s32 exit_state;
    s32 pid;
    char comm[16];
} KERNEL;

// Before 5.16, on some processors.
struct task_struct___older {
    u32 cpu;
} KERNEL;

struct gendisk {
    s32 major;
    s32 first_minor;
} KERNEL;

struct request_queue {
    struct gendisk *disk;
} KERNEL;

struct request {
    struct request_queue *q;
    u32 cmd_flags;
    u32 __data_len;
    u64 __sector;
} KERNEL;

struct io_kiocb {
    u8 opcode;
} KERNEL;

struct io_uring_cqe {
    s32 res;
} KERNEL;

// Bits of a request's flags; kernels number them differently.
enum req_flag_bits {
    __REQ_SYNC = 11,
    __REQ_META = 12,
    __REQ_FUA = 17,
    __REQ_PREFLUSH = 18,
};

// What the loader sets.

/// Binary logarithm of the records in a core's ring.
const volatile u32 RING_SHIFT = 12;
/// Where `struct pt_regs` has a call's arguments and its number.
const volatile u32 ARGUMENT_0 = 112;
const volatile u32 ARGUMENT_1 = 104;
const volatile u32 ARGUMENT_2 = 96;
const volatile u32 ARGUMENT_3 = 56;
const volatile u32 NUMBER = 120;
/// How each call is recorded, by its number.
#define CALLS 512
const volatile u8 HOW[CALLS] = {};
#define ENTRY 1
#define EXIT_ALWAYS 2
/// Servers receive in vain and poll before nearly every message: of these calls only exits that matter are recorded.
#define EXIT_IF_MORE 4
#define EXIT_IF_ZERO 8
/// Its first argument is the path of a file.
#define PATH 16
/// Its second argument is one, its first a directory.
#define PATH_IN_DIRECTORY 32
/// Its second argument is a message, of the length that the third tells.
#define REPLIES 64

// Records.

enum kind {
    ENTER = 1,
    EXIT,
    SWITCH,
    WAKING,
    FORK,
    RENAME,
    ENDED,
    ISSUE,
    COMPLETE,
    URING_SUBMIT,
    URING_COMPLETE,
    REPLY,
};

struct record {
    u64 time_ns;
    u32 sequence;
    u8 kind;
    u8 flags;
    u16 unused;
    s32 tid;
    u32 number;
    u64 words[4];
};

/// Records that are kept free.
#define SLACK 16

/// Of one core, on a line of the cache by itself.
struct position {
    u64 head;
    u64 tail;
    u64 lost;
    /// Kinds of interrupts that are under way on the core.
    u8 interrupts;
    u8 unused[39];
};

#define ARRAY 2
#define RINGBUF 27
#define MMAPABLE 1024

struct {
    int (*type)[ARRAY];
    u32 *key;
    struct record *value;
    int (*max_entries)[1];
    int (*map_flags)[MMAPABLE];
} records SEC(".maps");

struct {
    int (*type)[ARRAY];
    u32 *key;
    struct position *value;
    int (*max_entries)[1];
    int (*map_flags)[MMAPABLE];
} positions SEC(".maps");

/// The kernel gives no number above this (PID_MAX_LIMIT).
#define THREADS (1 << 22)
#define TARGET 1
#define CLIENT 2

/// A byte for each thread that there can be.
struct followed {
    u8 flags[THREADS];
};

struct {
    int (*type)[ARRAY];
    u32 *key;
    struct followed *value;
    int (*max_entries)[1];
    int (*map_flags)[MMAPABLE];
} threads SEC(".maps");

#define PATH_BYTES 4096

/// A call that opened or removed a file.
struct opened {
    u64 time_ns;
    u64 thread;
    s64 result;
    s64 directory;
    s64 length;
    char path[PATH_BYTES];
};

struct {
    int (*type)[RINGBUF];
    int (*max_entries)[8 << 20];
} opens SEC(".maps");

INLINE u8 *flags_of(u32 tid)
{
    u32 zero = 0;
    struct followed *followed = bpf_map_lookup_elem(&threads, &zero);
    return followed ? &followed->flags[tid & (THREADS - 1)] : 0;
}

INLINE u8 followed(u32 tid)
{
    u8 *flags = flags_of(tid);
    return flags ? *flags : 0;
}

/// A record that nobody else writes, or none where the ring is full.
struct claimed {
    struct record *record;
    u32 sequence;
};

INLINE struct claimed claim(u8 kind, u32 tid, u64 time_ns)
{
    struct claimed none = {};
    u32 core = bpf_get_smp_processor_id();
    struct position *position = bpf_map_lookup_elem(&positions, &core);
    if (!position)
        return none;
    // Interrupts may claim a few between this look and the claim.
    u64 room = (1ULL << RING_SHIFT) - SLACK;
    if (READ(position->head) - READ(position->tail) >= room) {
        __sync_fetch_and_add(&position->lost, 1);
        return none;
    }
    u64 at = __sync_fetch_and_add(&position->head, 1);
    u32 index = core << RING_SHIFT | (at & ((1ULL << RING_SHIFT) - 1));
    struct record *record = bpf_map_lookup_elem(&records, &index);
    if (!record)
        return none;
    record->time_ns = time_ns;
    record->kind = kind;
    record->flags = 0;
    record->tid = tid;
    return (struct claimed){record, at + 1};
}

/// The reader sees it from now on.
INLINE void complete(struct claimed claimed)
{
    __sync_lock_test_and_set(&claimed.record->sequence, claimed.sequence);
}

// Calls of the target's threads.

INLINE u64 argument(u64 *ctx, u32 offset)
{
    return *(u64 *)(ctx[0] + offset);
}

/// How a call is recorded, by its number, if the current thread's calls are.
INLINE u8 recorded(u32 tid, u32 number)
{
    if (number >= CALLS || !(followed(tid) & TARGET))
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    // Programs of 32 bits have other numbers.
    if (EXISTS(task->thread_info.status) && task->thread_info.status & COMPAT)
        return 0;
    // The compiler must not take this out: the kernel wants to see it.
    asm volatile("" : "+r"(number));
    return READ(HOW[number & (CALLS - 1)]);
}

/// The last bytes of a message. PostgreSQL, MySQL and MariaDB reply with `send`, which is the call `sendto`.
INLINE int replied(u64 *ctx, u32 tid)
{
    u64 bytes = argument(ctx, ARGUMENT_2), tail = 0;
    u64 from = argument(ctx, ARGUMENT_1) + bytes - sizeof tail;
    if (bytes >= sizeof tail && bpf_probe_read_user(&tail, sizeof tail, (void *)from))
        return 0;
    struct claimed claimed = claim(REPLY, tid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->number = 0;
    claimed.record->words[0] = bytes;
    claimed.record->words[1] = tail;
    complete(claimed);
    return 0;
}

SEC("tp_btf") int sys_enter(u64 *ctx)
{
    u32 tid = bpf_get_current_pid_tgid(), number = ctx[1];
    u8 how = recorded(tid, number);
    if (how & REPLIES)
        return replied(ctx, tid);
    if (!(how & ENTRY))
        return 0;
    struct claimed claimed = claim(ENTER, tid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->number = number;
    claimed.record->words[0] = argument(ctx, ARGUMENT_0);
    claimed.record->words[1] = argument(ctx, ARGUMENT_1);
    claimed.record->words[2] = argument(ctx, ARGUMENT_2);
    claimed.record->words[3] = argument(ctx, ARGUMENT_3);
    complete(claimed);
    return 0;
}

/// A path that a call has opened or removed: the kernel has read it, so that its page is in memory.
INLINE void named(u64 *ctx, bool in_directory, u64 thread, s64 result, u64 time_ns)
{
    struct opened *opened = bpf_ringbuf_reserve(&opens, sizeof *opened, 0);
    if (!opened)
        return;
    u64 path = in_directory ? argument(ctx, ARGUMENT_1) : argument(ctx, ARGUMENT_0);
    opened->time_ns = time_ns;
    opened->thread = thread;
    opened->result = result;
    opened->directory = in_directory ? argument(ctx, ARGUMENT_0) : AT_FDCWD;
    opened->length = bpf_probe_read_user_str(opened->path, PATH_BYTES, (void *)path);
    bpf_ringbuf_submit(opened, WAKE_NOBODY);
}

SEC("tp_btf") int sys_exit(u64 *ctx)
{
    u64 thread = bpf_get_current_pid_tgid();
    u32 number = argument(ctx, NUMBER);
    u8 how = recorded(thread, number);
    s64 result = ctx[1];
    if (!(how & EXIT_ALWAYS) && !(how & EXIT_IF_MORE && result > 0) && !(how & EXIT_IF_ZERO && result == 0))
        return 0;
    u64 time_ns = bpf_ktime_get_ns();
    if (how & (PATH | PATH_IN_DIRECTORY) && result >= 0)
        named(ctx, how & PATH_IN_DIRECTORY, thread, result, time_ns);
    struct claimed claimed = claim(EXIT, thread, time_ns);
    if (!claimed.record)
        return 0;
    claimed.record->number = number;
    claimed.record->words[0] = result;
    complete(claimed);
    return 0;
}

// Threads of the target and of its clients.

/// State of a thread that leaves its core, as tracepoints report it.
INLINE u32 reported_state(struct task_struct *task, bool preempted)
{
    u32 state = task->__state;
    if (preempted)
        return PREEMPTED;
    return state == IDLE ? REPORTED_IDLE : (state | task->exit_state) & REPORTED;
}

SEC("tp_btf") int sched_switch(u64 *ctx)
{
    struct task_struct *previous = (void *)ctx[1], *next = (void *)ctx[2];
    if (!(followed(previous->pid) | followed(next->pid)))
        return 0;
    struct claimed claimed = claim(SWITCH, previous->pid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->number = reported_state(previous, ctx[0]);
    claimed.record->words[0] = next->pid;
    complete(claimed);
    return 0;
}

INLINE u32 core_of(struct task_struct *task)
{
    if (EXISTS(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___older *)task)->cpu;
}

// Interrupts that may wake a thread: those of devices, of timers, and what is put off after them.
#define IN_HARD_INTERRUPT 1
#define IN_SOFT_INTERRUPT 2
#define IN_TIMER 4

INLINE u8 *interrupts(void)
{
    u32 core = bpf_get_smp_processor_id();
    struct position *position = bpf_map_lookup_elem(&positions, &core);
    return position ? &position->interrupts : 0;
}

INLINE int begins(u8 kind)
{
    u8 *under_way = interrupts();
    if (under_way)
        *under_way |= kind;
    return 0;
}

INLINE int ends(u8 kind)
{
    u8 *under_way = interrupts();
    if (under_way)
        *under_way &= ~kind;
    return 0;
}

SEC("tp_btf") int irq_handler_entry(u64 *ctx) { return begins(IN_HARD_INTERRUPT); }
SEC("tp_btf") int irq_handler_exit(u64 *ctx) { return ends(IN_HARD_INTERRUPT); }
SEC("tp_btf") int softirq_entry(u64 *ctx) { return begins(IN_SOFT_INTERRUPT); }
SEC("tp_btf") int softirq_exit(u64 *ctx) { return ends(IN_SOFT_INTERRUPT); }
SEC("tp_btf") int hrtimer_expire_entry(u64 *ctx) { return begins(IN_TIMER); }
SEC("tp_btf") int hrtimer_expire_exit(u64 *ctx) { return ends(IN_TIMER); }

INLINE int waking(struct task_struct *woken)
{
    u32 tid = bpf_get_current_pid_tgid();
    if (!(followed(tid) | followed(woken->pid)))
        return 0;
    struct claimed claimed = claim(WAKING, tid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    u8 *under_way = interrupts();
    claimed.record->flags = under_way ? *under_way : 0;
    claimed.record->number = core_of(woken);
    claimed.record->words[0] = woken->pid;
    complete(claimed);
    return 0;
}

SEC("tp_btf") int sched_waking(u64 *ctx) { return waking((void *)ctx[0]); }
// A new thread is woken by this one alone.
SEC("tp_btf") int sched_wakeup_new(u64 *ctx) { return waking((void *)ctx[0]); }

SEC("tp_btf") int task_newtask(u64 *ctx)
{
    struct task_struct *child = (void *)ctx[0];
    u32 tid = bpf_get_current_pid_tgid();
    u8 parent = followed(tid);
    if (!parent)
        return 0;
    u8 *flags = flags_of(child->pid);
    if (flags)
        *flags = parent;
    struct claimed claimed = claim(FORK, tid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->flags = ctx[1] & SAME_PROCESS ? 1 : 0;
    claimed.record->number = child->pid;
    bpf_probe_read_kernel(claimed.record->words, sizeof child->comm, child->comm);
    complete(claimed);
    return 0;
}

SEC("tp_btf") int task_rename(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    if (!followed(task->pid))
        return 0;
    struct claimed claimed = claim(RENAME, task->pid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->words[0] = claimed.record->words[1] = 0;
    bpf_probe_read_kernel_str(claimed.record->words, sizeof task->comm, (void *)ctx[1]);
    complete(claimed);
    return 0;
}

SEC("tp_btf") int sched_process_exit(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    if (!followed(task->pid))
        return 0;
    struct claimed claimed = claim(ENDED, task->pid, bpf_ktime_get_ns());
    if (claimed.record)
        complete(claimed);
    return 0;
}

/// Its number may be another thread's from now on.
SEC("tp_btf") int sched_process_free(u64 *ctx)
{
    u8 *flags = flags_of(((struct task_struct *)ctx[0])->pid);
    if (flags && *flags)
        *flags = 0;
    return 0;
}

// Requests of the whole machine: they complete in interrupts, under any thread.

INLINE u8 letters(u32 flags)
{
    return (flags >> VALUE(__REQ_PREFLUSH) & 1) | (flags >> VALUE(__REQ_FUA) & 1) << 1
        | (flags >> VALUE(__REQ_SYNC) & 1) << 2 | (flags >> VALUE(__REQ_META) & 1) << 3;
}

INLINE int requested(u8 kind, struct request *request, u32 bytes)
{
    struct gendisk *disk = request->q->disk;
    struct task_struct *task = bpf_get_current_task_btf();
    struct claimed claimed = claim(kind, task->pid, bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    bool of_kernel = task->flags & (PF_KTHREAD | PF_IO_WORKER);
    bool of_journal = of_kernel && !__builtin_memcmp(task->comm, "jbd2", 4);
    claimed.record->flags = letters(request->cmd_flags) | !of_kernel << 4 | of_journal << 5;
    claimed.record->number = request->cmd_flags & 0xff;
    claimed.record->words[0] = disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
    claimed.record->words[1] = request->__sector;
    claimed.record->words[2] = bytes / SECTOR_BYTES;
    complete(claimed);
    return 0;
}

SEC("tp_btf") int block_rq_issue(u64 *ctx)
{
    struct request *request = (void *)ctx[0];
    return requested(ISSUE, request, request->__data_len);
}

SEC("tp_btf") int block_rq_complete(u64 *ctx) { return requested(COMPLETE, (void *)ctx[0], ctx[2]); }

INLINE int of_ring(u8 kind, u64 request, u32 number)
{
    struct claimed claimed = claim(kind, bpf_get_current_pid_tgid(), bpf_ktime_get_ns());
    if (!claimed.record)
        return 0;
    claimed.record->number = number;
    claimed.record->words[0] = request;
    complete(claimed);
    return 0;
}

SEC("tp_btf") int io_uring_submit(u64 *ctx)
{
    return of_ring(URING_SUBMIT, ctx[0], ((struct io_kiocb *)ctx[0])->opcode);
}

SEC("tp_btf") int io_uring_complete(u64 *ctx)
{
    return of_ring(URING_COMPLETE, ctx[1], ((struct io_uring_cqe *)ctx[2])->res);
}

/// Before Linux 6.13 the result is an argument.
SEC("tp_btf") int io_uring_result(u64 *ctx) { return of_ring(URING_COMPLETE, ctx[1], ctx[3]); }

const char LICENSE[] SEC("license") = "Dual BSD/GPL";
