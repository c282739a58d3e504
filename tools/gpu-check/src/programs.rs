//! The programs that are run with and without gputrail. Each checks its own results and prints what it counted:
//! lines of `name value`. Values that begin with `time_` may differ from run to run, all others must not.

use crate::cuda::{Gpu, NOT_READY};
use crate::library::Failed;
use crate::markers::Range;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::time::Instant;

/// The values that a program prints.
pub type Values = BTreeMap<String, f64>;
type Result<T = Values> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A program.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// A sentence about it.
    pub about: &'static str,
    /// The signal that ends it, or 0.
    pub signal: i32,
    run: fn() -> Result,
}

/// All programs of CUDA.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "kernels",
        about: "2000 kernels with a copy to the GPU and one back",
        signal: 0,
        run: kernels,
    },
    Program {
        name: "copies",
        about: "copies of each kind, pageable and page-locked, and fills",
        signal: 0,
        run: copies,
    },
    Program {
        name: "streams",
        about: "kernels in 4 streams that wait for each other's events",
        signal: 0,
        run: streams,
    },
    Program {
        name: "graphs",
        about: "a graph of 10 kernels, launched 50 times",
        signal: 0,
        run: graphs,
    },
    Program {
        name: "managed",
        about: "managed memory that both sides use",
        signal: 0,
        run: managed,
    },
    Program {
        name: "threads",
        about: "8 threads that launch 200 kernels each",
        signal: 0,
        run: threads,
    },
    Program {
        name: "errors",
        about: "calls that fail, and a kernel that faults",
        signal: 0,
        run: errors,
    },
    Program {
        name: "abort",
        about: "100 kernels, then abort()",
        signal: libc::SIGABRT,
        run: abort,
    },
    Program {
        name: "overhead",
        about: "launches of an empty kernel and calls that do nothing",
        signal: 0,
        run: overhead,
    },
];

/// Runs the program of this name, and prints its values.
pub fn run(name: &str) -> Result<()> {
    let program = PROGRAMS.iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| format!("no program {name}"))?;
    print(&(program.run)()?);
    Ok(())
}

/// Prints values, a line each.
pub fn print(values: &Values) {
    for (name, value) in values {
        println!("{name} {value}");
    }
}

/// The values that a program has printed.
pub fn parse(text: &str) -> Values {
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn values<const N: usize>(all: [(&str, f64); N]) -> Values {
    all.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Elements of the vectors, and threads of a kernel.
pub const COUNT: usize = 1 << 16;
const BYTES: usize = COUNT * size_of::<f32>();

/// Fails if something that must be true is not.
fn ensure(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Two vectors on the GPU: 0, 1, 2, ... and zeros.
fn vectors(gpu: &Gpu) -> Result<(u64, u64)> {
    let x: Vec<f32> = (0..COUNT).map(|place| place as f32).collect();
    let (on_x, on_y) = (gpu.allocate(BYTES)?, gpu.allocate(BYTES)?);
    // SAFETY: both vectors have `BYTES` bytes, as `x` does.
    unsafe {
        gpu.cuda.cuMemcpyHtoD_v2(on_x, x.as_ptr().cast(), BYTES)?;
        gpu.cuda.cuMemsetD32_v2(on_y, 0, COUNT)?;
    }
    Ok((on_x, on_y))
}

/// The sum of a vector, whose element `place` must be `times * 2 * place`.
fn sum(gpu: &Gpu, vector: u64, times: f32) -> Result<f64> {
    let mut y = vec![0.0_f32; COUNT];
    // SAFETY: the vector is one of the device with `BYTES` bytes, as `y` has.
    unsafe {
        gpu.cuda
            .cuMemcpyDtoH_v2(y.as_mut_ptr().cast(), vector, BYTES)?;
    }
    // Exact: all are integers below 2^24, or the check is by a tolerance that rounding cannot reach.
    let off = |(place, value): (usize, &f32)| {
        let expected = times * 2.0 * place as f32;
        (value - expected).abs() > expected.abs() * 1e-3
    };
    ensure(
        !y.iter().enumerate().any(off),
        "a kernel computed something else",
    )?;
    Ok(y.iter().map(|value| f64::from(*value)).sum())
}

/// Milliseconds between two events.
fn elapsed(gpu: &Gpu, start: usize, end: usize) -> Result<f64> {
    let mut milliseconds = 0.0;
    // SAFETY: the events are of `Gpu::event`; the driver writes to a local.
    unsafe {
        gpu.cuda.cuEventSynchronize(end)?;
        gpu.cuda
            .cuEventElapsedTime(&raw mut milliseconds, start, end)?;
    }
    Ok(milliseconds.into())
}

fn kernels() -> Result {
    const KERNELS: u32 = 2000;
    let gpu = Gpu::open()?;
    let (x, y) = vectors(&gpu)?;
    let saxpy = gpu.kernel("saxpy")?;
    let (start, end) = (gpu.event()?, gpu.event()?);
    // SAFETY: the events and the kernel are of `gpu`, and the vectors are never freed.
    unsafe {
        gpu.cuda.cuEventRecord(start, 0)?;
        for _ in 0..KERNELS {
            gpu.saxpy(saxpy, COUNT as u32, (x, y), 0)?;
        }
        gpu.cuda.cuEventRecord(end, 0)?;
    }
    let milliseconds = elapsed(&gpu, start, end)?;
    let sum = sum(&gpu, y, KERNELS as f32)?;
    Ok(values([
        ("kernels", KERNELS.into()),
        ("copies", 2.0),
        ("fills", 1.0),
        ("allocations", 2.0),
        ("sum", sum),
        ("time_events_ms", milliseconds),
    ]))
}

fn copies() -> Result {
    let gpu = Gpu::open()?;
    let stream = gpu.stream()?;
    let (first, second) = (gpu.allocate(BYTES)?, gpu.allocate(BYTES)?);
    let data: Vec<u32> = (0..COUNT as u32).collect();
    let mut pinned: *mut c_void = std::ptr::null_mut();
    // SAFETY: all memory has `BYTES` bytes, and lives until the copies have ended; the driver writes the address of
    // page-locked memory to a local, and nobody else uses it. The stream is of `gpu`.
    unsafe {
        gpu.cuda.cuMemAllocHost_v2(&raw mut pinned, BYTES)?;
        let locked = std::slice::from_raw_parts_mut(pinned.cast::<u32>(), COUNT);
        locked.fill(0);
        gpu.cuda
            .cuMemcpyHtoD_v2(first, data.as_ptr().cast(), BYTES)?;
        gpu.cuda.cuMemcpyDtoD_v2(second, first, BYTES)?;
        gpu.cuda
            .cuMemcpyDtoHAsync_v2(pinned, second, BYTES, stream)?;
        gpu.cuda.cuStreamSynchronize(stream)?;
        ensure(*locked == *data, "copies changed the data")?;
        gpu.cuda
            .cuMemcpyHtoDAsync_v2(first, pinned, BYTES, stream)?;
        gpu.cuda.cuStreamSynchronize(stream)?;
        gpu.cuda.cuMemsetD8_v2(second, 0x11, BYTES)?;
        gpu.cuda.cuMemsetD32_v2(first, 7, COUNT / 2)?;
        let mut back = vec![0_u32; COUNT];
        gpu.cuda
            .cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), first, BYTES)?;
        ensure(
            back[0] == 7 && back[COUNT - 1] == COUNT as u32 - 1,
            "a fill went wrong",
        )?;
        gpu.cuda
            .cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), second, BYTES)?;
        ensure(
            back.iter().all(|value| *value == 0x1111_1111),
            "a fill went wrong",
        )?;
        gpu.cuda.cuMemFreeHost(pinned)?;
        gpu.cuda.cuMemFree_v2(first)?;
        gpu.cuda.cuMemFree_v2(second)?;
    }
    Ok(values([
        ("kernels", 0.0),
        ("copies", 6.0),
        ("fills", 2.0),
        ("bytes", 6.0 * BYTES as f64),
    ]))
}

fn streams() -> Result {
    const ROUNDS: u32 = 25;
    let gpu = Gpu::open()?;
    let (x, y) = vectors(&gpu)?;
    gpu.synchronize()?;
    let saxpy = gpu.kernel("saxpy")?;
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push((gpu.stream()?, gpu.event()?));
    }
    // A chain through all streams: no two kernels run at a time.
    let range = Range::push(c"chain");
    // SAFETY: the streams, events and the kernel are of `gpu`, and the vectors are never freed.
    unsafe {
        for _ in 0..ROUNDS {
            for place in 0..streams.len() {
                let (stream, event) = streams[place];
                gpu.saxpy(saxpy, COUNT as u32, (x, y), stream)?;
                gpu.cuda.cuEventRecord(event, stream)?;
                let (next, _) = streams[(place + 1) % streams.len()];
                gpu.cuda.cuStreamWaitEvent(next, event, 0)?;
            }
        }
        gpu.synchronize()?;
    }
    drop(range);
    let sum = sum(&gpu, y, 4.0 * ROUNDS as f32)?;
    Ok(values([
        ("kernels", f64::from(4 * ROUNDS)),
        ("copies", 2.0),
        ("fills", 1.0),
        ("sum", sum),
    ]))
}

fn graphs() -> Result {
    const NODES: u32 = 10;
    const LAUNCHES: u32 = 50;
    let gpu = Gpu::open()?;
    let (x, y) = vectors(&gpu)?;
    gpu.synchronize()?;
    let saxpy = gpu.kernel("saxpy")?;
    let stream = gpu.stream()?;
    let (mut graph, mut executable) = (0, 0);
    // SAFETY: the stream and the kernel are of `gpu`, and the vectors are never freed. The driver writes the graphs to
    // locals.
    unsafe {
        gpu.cuda.cuStreamBeginCapture_v2(stream, 0)?;
        for _ in 0..NODES {
            gpu.saxpy(saxpy, COUNT as u32, (x, y), stream)?;
        }
        gpu.cuda.cuStreamEndCapture(stream, &raw mut graph)?;
        gpu.cuda
            .cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)?;
        for _ in 0..LAUNCHES {
            gpu.cuda.cuGraphLaunch(executable, stream)?;
        }
        gpu.cuda.cuStreamSynchronize(stream)?;
    }
    let sum = sum(&gpu, y, (NODES * LAUNCHES) as f32)?;
    Ok(values([
        ("kernels", f64::from(NODES * LAUNCHES)),
        ("copies", 2.0),
        ("fills", 1.0),
        ("sum", sum),
    ]))
}

fn managed() -> Result {
    let gpu = Gpu::open()?;
    let saxpy = gpu.kernel("saxpy")?;
    let (mut x, mut y) = (0, 0);
    // SAFETY: the driver writes the addresses to locals. The vectors are never freed, and the host uses them while the GPU
    // does not.
    let all = unsafe {
        gpu.cuda.cuMemAllocManaged(&raw mut x, BYTES, 1)?;
        gpu.cuda.cuMemAllocManaged(&raw mut y, BYTES, 1)?;
        for place in 0..COUNT {
            (x as *mut f32).add(place).write(place as f32);
            (y as *mut f32).add(place).write(0.0);
        }
        gpu.saxpy(saxpy, COUNT as u32, (x, y), 0)?;
        gpu.synchronize()?;
        std::slice::from_raw_parts(y as *const f32, COUNT)
    };
    let sum: f64 = all.iter().map(|value| f64::from(*value)).sum();
    ensure(
        all[COUNT - 1] == 2.0 * (COUNT - 1) as f32,
        "a kernel computed something else",
    )?;
    Ok(values([("kernels", 1.0), ("sum", sum)]))
}

fn threads() -> Result {
    const THREADS: usize = 8;
    const KERNELS: u32 = 200;
    let gpu = Gpu::open()?;
    let saxpy = gpu.kernel("saxpy")?;
    let work = || -> std::result::Result<f64, String> {
        let text = |error: Box<dyn std::error::Error>| error.to_string();
        let failed = |failed: Failed| failed.to_string();
        gpu.make_current().map_err(failed)?;
        let (x, y) = vectors(&gpu).map_err(text)?;
        gpu.synchronize().map_err(failed)?;
        let stream = gpu.stream().map_err(failed)?;
        // SAFETY: the stream and the kernel are of `gpu`, and the vectors are never freed.
        unsafe {
            for _ in 0..KERNELS {
                gpu.saxpy(saxpy, COUNT as u32, (x, y), stream)
                    .map_err(failed)?;
            }
            gpu.cuda.cuStreamSynchronize(stream).map_err(failed)?;
        }
        sum(&gpu, y, KERNELS as f32).map_err(text)
    };
    let sums: std::result::Result<Vec<f64>, String> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a thread panicked".into()))
        });
        joined.collect()
    });
    Ok(values([
        ("kernels", (THREADS as u32 * KERNELS).into()),
        ("copies", 2.0 * THREADS as f64),
        ("fills", THREADS as f64),
        ("sum", sums?.iter().sum()),
    ]))
}

/// The status of a call that is to fail.
fn status(result: std::result::Result<(), Failed>) -> f64 {
    result.err().map_or(0.0, |failed| failed.status.into())
}

fn errors() -> Result {
    let gpu = Gpu::open()?;
    let (empty, fault) = (gpu.kernel("empty")?, gpu.kernel("fault")?);
    // SAFETY: a kernel without arguments.
    let too_many_threads = status(unsafe { gpu.launch(empty, (1, 1 << 20), 0, &mut []) });
    let too_much = status(gpu.allocate(usize::MAX / 4).map(drop));
    let unknown = status(gpu.kernel("no such kernel").map(drop));
    // SAFETY: kernels without arguments. The GPU stops the one that writes to memory that does not exist.
    unsafe {
        gpu.launch(empty, (1, 32), 0, &mut [])?;
        gpu.launch(fault, (1, 1), 0, &mut [])?;
    }
    let faulted = status(gpu.synchronize());
    Ok(values([
        ("too_many_threads", too_many_threads),
        ("too_much_memory", too_much),
        ("unknown_kernel", unknown),
        ("faulted", faulted),
    ]))
}

fn abort() -> Result {
    let gpu = Gpu::open()?;
    let (x, y) = vectors(&gpu)?;
    let saxpy = gpu.kernel("saxpy")?;
    // SAFETY: the kernel is of `gpu`, and the vectors are never freed.
    unsafe {
        for _ in 0..100 {
            gpu.saxpy(saxpy, COUNT as u32, (x, y), 0)?;
        }
        gpu.synchronize()?;
    }
    // As long as CUPTI takes to deliver what has completed.
    std::thread::sleep(std::time::Duration::from_millis(500));
    println!("kernels 100");
    std::process::abort();
}

/// The time of one of `count` calls, ns.
fn per_call(count: u32, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..count {
        call()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
}

fn overhead() -> Result {
    const BATCH: u32 = 500;
    const BATCHES: u32 = 40;
    let gpu = Gpu::open()?;
    let empty = gpu.kernel("empty")?;
    let stream = gpu.stream()?;
    let (mut launches, mut queries) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        // SAFETY: a kernel without arguments, and a stream of `gpu`.
        unsafe {
            launches.push(per_call(BATCH, || {
                Ok(gpu.launch(empty, (1, 32), stream, &mut [])?)
            })?);
            gpu.cuda.cuStreamSynchronize(stream)?;
            queries.push(per_call(BATCH, || match gpu.cuda.cuStreamQuery(stream) {
                Ok(()) => Ok(()),
                Err(failed) if failed.status == NOT_READY => Ok(()),
                Err(failed) => Err(failed.into()),
            })?);
        }
    }
    // The median: other programs of the machine take their time, too.
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Ok(values([
        ("kernels", (BATCH * BATCHES).into()),
        ("time_launch_ns", median(launches)),
        ("time_query_ns", median(queries)),
    ]))
}

/// Runs for some seconds in a kernel of many instructions, for samples.
pub fn spin() -> Result<()> {
    let gpu = Gpu::open()?;
    let spin = gpu.kernel("spin")?;
    let mut result = gpu.allocate(4)?;
    let mut rounds = 20_000_000_u32;
    // SAFETY: the kernel `spin` takes a number of rounds and a place for a number on the device, which is never freed.
    unsafe {
        for _ in 0..5 {
            let mut arguments: [*mut c_void; 2] =
                [(&raw mut rounds).cast(), (&raw mut result).cast()];
            gpu.launch(spin, (1, 32), 0, &mut arguments)?;
        }
        gpu.synchronize()?;
    }
    print(&values([("kernels", 5.0)]));
    Ok(())
}
