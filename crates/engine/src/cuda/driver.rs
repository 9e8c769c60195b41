//! The CUDA driver behind a few safe types: cards, memory, code and graphs.
#![allow(unsafe_code)] // every call crosses into the driver

use super::Trouble;
use crate::device::Card;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, OnceLock};

/// The result of a driver call as a value.
fn check(what: &str, status: CUresult) -> Result<(), Trouble> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Trouble::new(format!(
            "the GPU has no memory left ({what}); use fewer replicas or rows, free the card, or compute on the CPU"
        ))),
        other => {
            let mut text = std::ptr::null();
            // SAFETY: the driver sets the pointer to a static string, or leaves it null.
            let text = unsafe {
                sys::cuGetErrorString(other, &mut text);
                if text.is_null() { "unknown error".into() } else { CStr::from_ptr(text).to_string_lossy() }
            };
            Err(Trouble::new(format!("CUDA: {what} failed: {text}")))
        }
    }
}

/// The driver, started; or why not.
fn start() -> Result<(), Trouble> {
    static STARTED: OnceLock<Result<(), Trouble>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            // SAFETY: looks for the library; then starts it, which has no preconditions.
            unsafe {
                if !sys::is_culib_present() {
                    return Err(Trouble::new(
                        "there is no NVIDIA driver (libcuda was not found); install one, or compute on the CPU".into(),
                    ));
                }
                check("starting the driver (is there a card, and may this user open it?)", sys::cuInit(0))
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
        check("counting cards", sys::cuDeviceGetCount(&mut count))?;
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
        check("opening a card", sys::cuDeviceGet(&mut device, index))?;
        check("naming a card", sys::cuDeviceGetName(name.as_mut_ptr(), 127, device))?;
        check("measuring a card", sys::cuDeviceTotalMem_v2(&mut memory, device))?;
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
        Trouble::new(format!("there is no card cuda:{index}: this machine has {count}; `minvel devices` lists them"))
    })?;
    if card.capability.0 < 8 {
        let (major, minor) = card.capability;
        return Err(Trouble::new(format!(
            "{} has compute capability {major}.{minor}; minvel needs 8.0 or newer: compute on the CPU",
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

// SAFETY: contexts may be used from any thread once made current there, which every call does.
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
            check("opening the card", sys::cuDeviceGet(&mut device, index as c_int))?;
            check("using the card", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
        }
        let gpu = Arc::new(Gpu { card, context });
        gpu.enter()?;
        open.push(gpu.clone());
        Ok(gpu)
    }

    /// Makes the card current in this thread.
    pub fn enter(&self) -> Result<(), Trouble> {
        // SAFETY: the context is retained for as long as the process runs.
        check("using the card", unsafe { sys::cuCtxSetCurrent(self.context) })
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
        let (mut address, bytes) = (0, bytes.max(16));
        gpu.enter()?;
        // SAFETY: the card is current; the memory set is the memory got. Clearing is waited for: our streams do not wait for
        // the one that it is done in, so that what they write meanwhile would be cleared too.
        unsafe {
            check(&format!("asking for {} MB", bytes >> 20), sys::cuMemAlloc_v2(&mut address, bytes))?;
            check("clearing memory", sys::cuMemsetD8_v2(address, 0, bytes))?;
            check("clearing memory", sys::cuStreamSynchronize(std::ptr::null_mut()))?;
        }
        Ok(Memory { gpu: gpu.clone(), address, bytes })
    }

    /// Copies numbers to the card, from number `at` on.
    pub fn upload<T: Copy>(&self, stream: &Stream, at: usize, values: &[T]) -> Result<(), Trouble> {
        let bytes = size_of_val(values);
        assert!(at * size_of::<T>() + bytes <= self.bytes, "an upload must fit its memory");
        self.gpu.enter()?;
        let to = self.address + (at * size_of::<T>()) as u64;
        // SAFETY: the range was checked; pageable memory is read before the call returns.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, values.as_ptr().cast(), bytes, stream.raw) };
        check("copying to the card", status)
    }

    /// Repeats the first numbers, which are there or on their way, until there are `times` copies of them.
    pub fn repeat<T: Copy>(&self, stream: &Stream, len: usize, times: usize) -> Result<(), Trouble> {
        let (one, all) = (len * size_of::<T>(), len * times * size_of::<T>());
        assert!(all <= self.bytes, "copies must fit their memory");
        self.gpu.enter()?;
        let mut done = one;
        while done < all {
            let bytes = done.min(all - done);
            // SAFETY: source and target are ours, lie within the range that was checked, and do not overlap.
            let status =
                unsafe { sys::cuMemcpyDtoDAsync_v2(self.address + done as u64, self.address, bytes, stream.raw) };
            check("copying on the card", status)?;
            done += bytes;
        }
        Ok(())
    }

    /// Copies numbers from the card, after all that the stream was given before.
    pub fn download<T: Copy + Default>(&self, stream: &Stream, at: usize, len: usize) -> Result<Vec<T>, Trouble> {
        let mut values = vec![T::default(); len];
        let bytes = len * size_of::<T>();
        assert!(at * size_of::<T>() + bytes <= self.bytes, "a download must fit its memory");
        self.gpu.enter()?;
        let from = self.address + (at * size_of::<T>()) as u64;
        // SAFETY: both ranges were checked, and T is a plain number.
        let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), from, bytes, stream.raw) };
        check("copying from the card", copied)?;
        stream.wait()?;
        Ok(values)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory is ours, and freeing waits for the work that uses it.
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
}

// SAFETY: the driver serialises calls on a stream, from whatever thread.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stream, Trouble> {
        let mut raw = std::ptr::null_mut();
        gpu.enter()?;
        // SAFETY: the card is current. Flag 1: the stream does not wait for others.
        check("making a stream", unsafe { sys::cuStreamCreate(&mut raw, 1) })?;
        Ok(Stream { gpu: gpu.clone(), raw })
    }

    /// Waits until all work is done.
    pub fn wait(&self) -> Result<(), Trouble> {
        self.gpu.enter()?;
        // SAFETY: the stream is ours.
        check("running kernels", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// Sets a word of memory.
    pub fn set(&self, memory: &Memory, value: u32) -> Result<(), Trouble> {
        // SAFETY: memory has at least 16 bytes.
        check("setting the clock", unsafe { sys::cuMemsetD32Async(memory.address, value, 1, self.raw) })
    }

    /// Runs a graph.
    pub fn launch(&self, graph: &Graph) -> Result<(), Trouble> {
        // SAFETY: the graph's kernels and the memory they were given live as long as the graph's owner.
        check("launching a step", unsafe { sys::cuGraphLaunch(graph.raw, self.raw) })
    }

    /// Records launches as a graph.
    pub fn record(&self, launches: impl FnOnce(&Recorder) -> Result<(), Trouble>) -> Result<Graph, Trouble> {
        use sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as MODE;
        self.gpu.enter()?;
        let (mut graph, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is ours; what is captured is ended before anything else is done with it.
        unsafe {
            check("recording a step", sys::cuStreamBeginCapture_v2(self.raw, MODE))?;
            let launched = launches(&Recorder { stream: self.raw });
            let ended = check("recording a step", sys::cuStreamEndCapture(self.raw, &mut graph));
            launched.and(ended)?;
            let made = check("preparing a step", sys::cuGraphInstantiateWithFlags(&mut raw, graph, 0));
            sys::cuGraphDestroy(graph);
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
        use sys::CUlaunchAttributeID_enum::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION as EARLY;
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
            hStream: self.stream,
            attrs: &mut attribute,
            numAttrs: u32::from(code.gpu.card.capability.0 >= 9),
        };
        let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        // SAFETY: the kernel's parameters are what `arguments` holds, in order; the driver copies them.
        check("launching a kernel", unsafe {
            sys::cuLaunchKernelEx(&config, code.function, pointers.as_mut_ptr(), std::ptr::null_mut())
        })
    }
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
        // SAFETY: the code is NVRTC's for this card.
        unsafe {
            check("loading a kernel", sys::cuModuleLoadData(&mut module, code.as_ptr().cast()))?;
            check("finding a kernel", sys::cuModuleGetFunction(&mut function, module, c"step_kernel".as_ptr()))?;
            if shared > 48 << 10 {
                check("reserving shared memory", sys::cuFuncSetAttribute(function, SHARED, shared as c_int))?;
            }
        }
        Ok(Code { gpu: gpu.clone(), module, function })
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the module is ours, and graphs that use it are dropped before it.
        unsafe {
            sys::cuCtxSetCurrent(self.gpu.context);
            sys::cuModuleUnload(self.module);
        }
    }
}
