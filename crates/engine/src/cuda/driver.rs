//! The CUDA driver behind a few safe types: cards, memory, code and graphs.
#![allow(unsafe_code)] // every call crosses into the driver

use super::Trouble;
use crate::device::{Card, DeviceErrorKind};
use crate::limits::filled;
use crate::math::Real;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The result of a driver call as a value.
fn check(what: &str, status: CUresult) -> Result<(), Trouble> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(Trouble::new(
            DeviceErrorKind::OutOfMemory,
            format!(
                "the GPU is out of memory ({what}); use fewer rows or replicas, free GPU memory, or use another GPU \
                 or the CPU"
            ),
        ));
    }
    let mut text = std::ptr::null();
    // SAFETY: the driver sets the pointer to a static string, or leaves it null.
    let text = unsafe {
        sys::cuGetErrorString(status, &mut text);
        if text.is_null() { "unknown error".into() } else { CStr::from_ptr(text).to_string_lossy() }
    };
    Err(Trouble::failed(format!(
        "the GPU failed ({what}): {text}; run again, and if it fails again, use another GPU or the CPU"
    )))
}

/// What is called here: a driver without one of them would end the process when it is.
const FUNCTIONS: [&str; 31] = [
    "cuGetErrorString",
    "cuInit",
    "cuDeviceGetCount",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemsetD8_v2",
    "cuMemsetD32Async",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphLaunch",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuLaunchKernelEx",
];

/// The driver, started; or why not.
fn start() -> Result<(), Trouble> {
    static STARTED: OnceLock<Result<(), Trouble>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            // SAFETY: looks for the library and its functions; then starts it, which has no preconditions.
            unsafe {
                if !sys::is_culib_present() {
                    return Err(Trouble::unavailable(
                        "no NVIDIA driver was found (no libcuda); install one, or use the CPU",
                    ));
                }
                if let Some(name) =
                    FUNCTIONS.iter().find(|name| sys::culib().get::<*const ()>(name.as_bytes()).is_err())
                {
                    return Err(Trouble::unavailable(format!(
                        "the NVIDIA driver is too old (libcuda has no {name}); install CUDA 12 or newer, or use the \
                         CPU"
                    )));
                }
                check("starting the driver (is there a GPU, and may this user access it?)", sys::cuInit(0))
                    .map_err(|why| Trouble::unavailable(why.to_string()))
            }
        })
        .clone()
}

/// All cards of this machine.
pub fn cards() -> Result<Vec<Card>, Trouble> {
    start()?;
    let (mut count, mut version) = (0, 0);
    // SAFETY: the driver is started; the pointers are valid.
    unsafe {
        check("counting GPUs", sys::cuDeviceGetCount(&mut count))?;
        check("asking for the version", sys::cuDriverGetVersion(&mut version))?;
    }
    (0..count).map(|index| card(index, (version / 1000, version % 1000 / 10))).collect()
}

fn card(index: c_int, driver: (i32, i32)) -> Result<Card, Trouble> {
    use sys::CUdevice_attribute_enum::*;
    let mut name = [0; 128];
    let (mut device, mut memory, mut major, mut minor) = (0, 0, 0, 0);
    // SAFETY: the driver is started, `index` is below the count, and all pointers are valid.
    unsafe {
        check("opening a GPU", sys::cuDeviceGet(&mut device, index))?;
        check("naming a card", sys::cuDeviceGetName(name.as_mut_ptr(), 127, device))?;
        check("querying a GPU", sys::cuDeviceTotalMem_v2(&mut memory, device))?;
        check("asking", sys::cuDeviceGetAttribute(&mut major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))?;
        check("asking", sys::cuDeviceGetAttribute(&mut minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))?;
        let name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
        Ok(Card { index: index as usize, name, memory, capability: (major, minor), driver })
    }
}

/// A card that programs can run on, not opened yet.
pub(super) fn find(index: usize) -> Result<Card, Trouble> {
    let cards = cards()?;
    let count = cards.len();
    let card = cards.into_iter().nth(index).ok_or_else(|| {
        Trouble::unavailable(format!(
            "there is no GPU cuda:{index}: this machine has {count}; `minvel devices` lists them"
        ))
    })?;
    if card.capability.0 < 8 {
        let (major, minor) = card.capability;
        return Err(Trouble::unavailable(format!(
            "{} has compute capability {major}.{minor}, but minvel needs 8.0 or newer; use the CPU",
            card.name
        )));
    }
    Ok(card)
}

/// A card in use by this process.
pub(super) struct Gpu {
    pub card: Card,
    context: sys::CUcontext,
}

// SAFETY: contexts may be used from any thread once made current there, which every call does; the pointer itself is never
// changed, and the context is retained until the process ends.
unsafe impl Send for Gpu {}
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens a card; every program of the process shares it.
    pub fn open(index: usize) -> Result<Arc<Gpu>, Trouble> {
        static OPEN: Mutex<Vec<Arc<Gpu>>> = Mutex::new(vec![]);
        let mut open = OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(gpu) = open.iter().find(|g| g.card.index == index) {
            gpu.enter()?;
            return Ok(gpu.clone());
        }
        let card = find(index)?;
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: the driver is started and the card exists.
        unsafe {
            check("opening the GPU", sys::cuDeviceGet(&mut device, index as c_int))?;
            check("using the GPU", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
        }
        let gpu = Arc::new(Gpu { card, context });
        gpu.enter()?;
        open.push(gpu.clone());
        Ok(gpu)
    }

    /// Makes the card current in this thread.
    pub fn enter(&self) -> Result<(), Trouble> {
        // SAFETY: the context is retained for as long as the process runs.
        check("using the GPU", unsafe { sys::cuCtxSetCurrent(self.context) })
    }
}

/// A piece of the card's memory.
pub(super) struct Memory {
    gpu: Arc<Gpu>,
    pub address: sys::CUdeviceptr,
    bytes: usize,
}

impl Memory {
    /// Memory set to zero.
    pub fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Memory, Trouble> {
        let bytes = bytes.max(16);
        gpu.enter()?;
        let mut address = 0;
        // SAFETY: the card is current; the pointer is valid.
        let got = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
        check(&format!("allocating {} MB", bytes.div_ceil(1 << 20)), got)?;
        let memory = Memory { gpu: gpu.clone(), address, bytes }; // from here on it is freed, whatever happens
        // SAFETY: the memory set is the memory got. Clearing is waited for: our streams do not wait for the one that it is done
        // in, so that what they write meanwhile would be cleared too.
        unsafe {
            check("clearing memory", sys::cuMemsetD8_v2(address, 0, bytes))?;
            check("clearing memory", sys::cuStreamSynchronize(std::ptr::null_mut()))?;
        }
        Ok(memory)
    }

    /// The address of number `at`, from which `len` numbers are within this memory.
    fn range<T>(&self, at: usize, len: usize) -> sys::CUdeviceptr {
        let end = at.checked_add(len).and_then(|n| n.checked_mul(size_of::<T>()));
        assert!(end.is_some_and(|end| end <= self.bytes), "a copy must fit its memory");
        self.address + (at * size_of::<T>()) as u64
    }

    /// Copies numbers to the card, from number `at` on, after all that the stream was given before; waits until they are there.
    pub fn upload<T: Copy>(&self, stream: &Stream, at: usize, values: &[T]) -> Result<(), Trouble> {
        let to = self.range::<T>(at, values.len());
        let turn = stream.turn()?;
        // SAFETY: the target's range was checked. The driver may read ordinary memory after the call has returned (it does
        // where cards read the memory of processes themselves), so the copy is waited for while `values` is borrowed; if waiting fails
        // the card is lost, and reads no more.
        let copied = unsafe { sys::cuMemcpyHtoDAsync_v2(to, values.as_ptr().cast(), size_of_val(values), stream.raw) };
        check("copying to the GPU", copied)?;
        turn.wait()
    }

    /// Repeats the first numbers, which are there or on their way, until there are `times` copies of them.
    pub fn repeat<T: Copy>(&self, stream: &Stream, len: usize, times: usize) -> Result<(), Trouble> {
        let (one, all) = (len * size_of::<T>(), len * times * size_of::<T>());
        let start = self.range::<T>(0, len * times);
        let _turn = stream.turn()?;
        let mut done = one;
        while done < all {
            let bytes = done.min(all - done);
            // SAFETY: source and target are ours, lie within the range that was checked, and do not overlap.
            let status = unsafe { sys::cuMemcpyDtoDAsync_v2(start + done as u64, start, bytes, stream.raw) };
            check("copying on the GPU", status)?;
            done += bytes;
        }
        Ok(())
    }

    /// Copies numbers from the card, after all that the stream was given before.
    pub fn download<T: Number>(&self, stream: &Stream, at: usize, len: usize) -> Result<Vec<T>, Trouble> {
        let from = self.range::<T>(at, len);
        let mut values = filled(T::default(), len)?;
        let turn = stream.turn()?;
        // SAFETY: both ranges were checked, any bits are a `Number`, and the copy is waited for before anybody reads or frees the
        // target; if waiting fails the card is lost, and writes no more.
        let copied =
            unsafe { sys::cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), from, len * size_of::<T>(), stream.raw) };
        check("copying from the GPU", copied)?;
        turn.wait()?;
        Ok(values)
    }
}

/// Numbers for which all bits have a meaning.
pub(super) trait Number: Copy + Default {}
impl<T: Real> Number for T {}
impl Number for u64 {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory is ours, and freeing waits for the work that uses it. On a lost card both fail, without harm.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuMemFree_v2(self.address);
        }
    }
}

/// An order of work on a card.
pub(super) struct Stream {
    gpu: Arc<Gpu>,
    raw: sys::CUstream,
    /// Held while a step is recorded, or something is copied: what is recorded must be the step alone.
    busy: Mutex<()>,
}

// SAFETY: the driver serialises calls on a stream, from whatever thread; the handle is never changed. What belongs together is
// done in a turn.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

/// The only one to give work to a stream, as long as it is held.
struct Turn<'a> {
    stream: &'a Stream,
    _only: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Waits until all work is done.
    fn wait(self) -> Result<(), Trouble> {
        // SAFETY: the stream is ours, and its card is current.
        check("running kernels", unsafe { sys::cuStreamSynchronize(self.stream.raw) })
    }
}

impl Stream {
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stream, Trouble> {
        let mut raw = std::ptr::null_mut();
        gpu.enter()?;
        // SAFETY: the card is current. Flag 1: the stream does not wait for others.
        check("making a stream", unsafe { sys::cuStreamCreate(&mut raw, 1) })?;
        Ok(Stream { gpu: gpu.clone(), raw, busy: Mutex::new(()) })
    }

    fn turn(&self) -> Result<Turn<'_>, Trouble> {
        let only = self.busy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.gpu.enter()?;
        Ok(Turn { stream: self, _only: only })
    }

    /// Waits until all work is done.
    pub fn wait(&self) -> Result<(), Trouble> {
        self.turn()?.wait()
    }

    /// Sets a word of memory.
    pub fn set(&self, memory: &Memory, value: u32) -> Result<(), Trouble> {
        let _turn = self.turn()?;
        // SAFETY: memory has at least 16 bytes.
        check("setting the clock", unsafe { sys::cuMemsetD32Async(memory.address, value, 1, self.raw) })
    }

    /// Runs a kernel with arguments of eight bytes each, and waits for it.
    pub fn run(&self, code: &Code, blocks: usize, shared: usize, arguments: &mut [u64]) -> Result<(), Trouble> {
        let turn = self.turn()?;
        launch(self.raw, code, blocks, shared, arguments, false)?;
        turn.wait()
    }

    /// Runs a graph.
    pub fn launch(&self, graph: &Graph) -> Result<(), Trouble> {
        let _turn = self.turn()?;
        // SAFETY: the graph's kernels and the memory they were given live as long as the graph's owner, which waits before it
        // frees them.
        check("launching a step", unsafe { sys::cuGraphLaunch(graph.raw, self.raw) })
    }

    /// Records launches as a graph.
    pub fn record(&self, launches: impl FnOnce(&Recorder) -> Result<(), Trouble>) -> Result<Graph, Trouble> {
        use sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as MODE;
        let _turn = self.turn()?;
        let (mut graph, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is ours, and in this turn nobody else gives it work; what is captured is ended before anything else
        // is done with it, and destroyed when it has been made ready, or could not be.
        unsafe {
            check("recording a step", sys::cuStreamBeginCapture_v2(self.raw, MODE))?;
            let launched = launches(&Recorder { stream: self.raw });
            let ended = check("recording a step", sys::cuStreamEndCapture(self.raw, &mut graph));
            let mut prepare = || check("preparing a step", sys::cuGraphInstantiateWithFlags(&mut raw, graph, 0));
            let made = launched.and(ended).and_then(|()| prepare());
            if !graph.is_null() {
                sys::cuGraphDestroy(graph);
            }
            made?;
        }
        Ok(Graph { gpu: self.gpu.clone(), raw })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is ours; destroying it lets its work finish.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuStreamDestroy_v2(self.raw);
        }
    }
}

/// A recorded step.
pub(super) struct Graph {
    gpu: Arc<Gpu>,
    raw: sys::CUgraphExec,
}

// SAFETY: the driver's handle may be used from any thread that made the context current, which every call does.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is ours.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuGraphExecDestroy(self.raw);
        }
    }
}

/// A stream while it records.
pub(super) struct Recorder {
    stream: sys::CUstream,
}

impl Recorder {
    /// Launches a kernel with arguments of eight bytes each (the second: four), which may start before the one before
    /// it has ended (it waits for it itself).
    pub fn launch(&self, code: &Code, blocks: usize, shared: usize, arguments: &mut [u64]) -> Result<(), Trouble> {
        launch(self.stream, code, blocks, shared, arguments, code.gpu.card.capability.0 >= 9)
    }
}

/// Launches a kernel in a stream; `early`: it may start before the one before it has ended.
fn launch(
    stream: sys::CUstream,
    code: &Code,
    blocks: usize,
    shared: usize,
    arguments: &mut [u64],
    early: bool,
) -> Result<(), Trouble> {
    use sys::CUlaunchAttributeID_enum::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION as EARLY;
    assert!(blocks <= c_int::MAX as usize && shared <= c_int::MAX as usize, "a plan keeps to the limits of cards");
    let value = sys::CUlaunchAttributeValue_union { programmaticStreamSerializationAllowed: 1 };
    let mut attribute = sys::CUlaunchAttribute { id: EARLY, pad: [0; 4], value };
    let config = sys::CUlaunchConfig {
        gridDimX: blocks as c_uint,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: super::THREADS as c_uint,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared as c_uint,
        hStream: stream,
        attrs: &mut attribute,
        numAttrs: u32::from(early),
    };
    let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
    // SAFETY: the kernel's parameters are what `arguments` holds, in order; the driver copies them.
    check("launching a kernel", unsafe {
        sys::cuLaunchKernelEx(&config, code.function, pointers.as_mut_ptr(), std::ptr::null_mut())
    })
}

/// A kernel on the card.
pub(super) struct Code {
    gpu: Arc<Gpu>,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: modules and their functions do not change once loaded, and may be used from any thread.
unsafe impl Send for Code {}
unsafe impl Sync for Code {}

impl Code {
    /// Loads machine code with one kernel, `step_kernel`, that uses some bytes of shared memory.
    pub fn load(gpu: &Arc<Gpu>, code: &[u8], shared: usize) -> Result<Code, Trouble> {
        use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;
        gpu.enter()?;
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the code is NVRTC's for this card, whole (the cache checks it), and says itself where it ends.
        check("loading a kernel", unsafe { sys::cuModuleLoadData(&mut module, code.as_ptr().cast()) })?;
        let mut code = Code { gpu: gpu.clone(), module, function }; // from here on it is unloaded, whatever happens
        // SAFETY: the module was just loaded; the function is its own.
        unsafe {
            check("finding a kernel", sys::cuModuleGetFunction(&mut function, module, c"step_kernel".as_ptr()))?;
            if shared > 48 << 10 {
                check("reserving shared memory", sys::cuFuncSetAttribute(function, SHARED, shared as c_int))?;
            }
        }
        code.function = function;
        Ok(code)
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the module is ours, and graphs that use it are dropped before it, when their work is done.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuModuleUnload(self.module);
        }
    }
}
