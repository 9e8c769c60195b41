//! NVIDIA's run-time compiler, found when it is first needed, and a cache of what it made.
#![allow(unsafe_code)] // the library is loaded and called by hand

use super::Trouble;
use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type Program = *mut c_void;

/// The library and its version.
pub(super) struct Nvrtc {
    library: Library,
    version: (c_int, c_int),
}

static FOUND: OnceLock<Result<Nvrtc, String>> = OnceLock::new();

/// Where the library may lie, the loader's own search first.
fn candidates() -> Vec<PathBuf> {
    let names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let homes: Vec<PathBuf> = homes.chain([PathBuf::from("/usr/local/cuda")]).collect();
    let folders = homes.iter().flat_map(|h| [h.join("lib64"), h.join("bin")]);
    let plain = names.iter().map(PathBuf::from);
    plain.chain(folders.flat_map(|f| names.map(|n| f.join(n)))).collect()
}

impl Nvrtc {
    /// The compiler of this process.
    pub fn find() -> Result<&'static Nvrtc, Trouble> {
        FOUND.get_or_init(Self::load).as_ref().map_err(|what| {
            Trouble::unavailable(format!(
                "NVIDIA's run-time compiler (libnvrtc) cannot be used: {what}; install the CUDA toolkit or the \
                 `nvidia-cuda-nvrtc` package and add its folder to LD_LIBRARY_PATH, or use the CPU"
            ))
        })
    }

    fn load() -> Result<Nvrtc, String> {
        // SAFETY: loading NVIDIA's library runs its initialisers, which have no preconditions.
        let open = |path: PathBuf| unsafe { Library::new(path) }.ok();
        let library = candidates().into_iter().find_map(open).ok_or("no such library was found")?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the signature is that of NVRTC's header; both pointers are valid.
        unsafe {
            let version: Symbol<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int> =
                library.get(b"nvrtcVersion\0").map_err(|e| e.to_string())?;
            let status = version(&mut major, &mut minor);
            if status != 0 {
                return Err(format!("nvrtcVersion failed with status {status}"));
            }
        }
        Ok(Nvrtc { library, version: (major, minor) })
    }

    /// Machine code for compute capability `arch` (90 means 9.0), from the cache if it is there.
    pub fn compile(&self, source: &str, arch: i32) -> Result<Vec<u8>, Trouble> {
        let (major, minor) = self.version;
        // A value may be computed in several kernels, and compared: each operation is rounded, whatever stands around it.
        let options = ["--fmad=false", "--std=c++17", "--disable-warnings"].map(String::from);
        let options = [vec![format!("--gpu-architecture=sm_{arch}")], options.to_vec()].concat();
        let key = fingerprint(format!("{major}.{minor} {options:?}\n{source}").as_bytes());
        let entry = cache_folder().map(|folder| folder.join(format!("{key}.cubin")));
        if let Some(code) = entry.as_deref().and_then(read) {
            return Ok(code);
        }
        // SAFETY: see `build`.
        let code = unsafe { self.build(source, &options) }.map_err(Trouble::failed)?;
        if let Some(entry) = entry {
            write(&entry, &code);
        }
        Ok(code)
    }

    /// # Safety
    /// None beyond that NVRTC keeps to its header: all pointers are valid for the calls they are given to.
    unsafe fn build(&self, source: &str, options: &[String]) -> Result<Vec<u8>, String> {
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
        let text = CString::new(source).map_err(|e| e.to_string())?;
        let options: Result<Vec<CString>, _> = options.iter().map(|o| CString::new(o.as_str())).collect();
        let options = options.map_err(|e| e.to_string())?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: signatures as in NVRTC's header; buffers have the sizes NVRTC asks for.
        unsafe {
            let create: Symbol<Create> = self.symbol(b"nvrtcCreateProgram\0")?;
            let compile: Symbol<Compile> = self.symbol(b"nvrtcCompileProgram\0")?;
            let destroy: Symbol<Destroy> = self.symbol(b"nvrtcDestroyProgram\0")?;
            let fetch = |program: Program, size: &[u8], text: &[u8]| -> Result<Vec<u8>, String> {
                let (size, text): (Symbol<Size>, Symbol<Text>) = (self.symbol(size)?, self.symbol(text)?);
                let mut length = 0;
                let sized = size(program, &mut length);
                let mut bytes = if sized == 0 { vec![0u8; length] } else { vec![] };
                match if sized == 0 { text(program, bytes.as_mut_ptr().cast()) } else { sized } {
                    0 => Ok(bytes),
                    status => Err(format!("NVRTC returned no result (status {status})")),
                }
            };
            let mut program: Program = std::ptr::null_mut();
            let status =
                create(&mut program, text.as_ptr(), c"minvel.cu".as_ptr(), 0, std::ptr::null(), std::ptr::null());
            if status != 0 {
                return Err(format!("nvrtcCreateProgram failed with status {status}"));
            }
            let status = compile(program, options.len() as c_int, options.as_ptr());
            let result = if status == 0 {
                fetch(program, b"nvrtcGetCUBINSize\0", b"nvrtcGetCUBIN\0")
            } else {
                let log = fetch(program, b"nvrtcGetProgramLogSize\0", b"nvrtcGetProgramLog\0").unwrap_or_default();
                let log =
                    CStr::from_bytes_until_nul(&log).map_or_else(|_| String::new(), |l| l.to_string_lossy().into());
                Err(format!("a generated kernel does not compile (a bug in minvel, status {status}):\n{log}"))
            };
            destroy(&mut program);
            result
        }
    }

    /// # Safety
    /// `F` must be the type the library's header gives the function.
    unsafe fn symbol<F>(&self, name: &[u8]) -> Result<Symbol<'_, F>, String> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get(name) }.map_err(|e| e.to_string())
    }
}

/// 128 bits of FNV-1a, in two halves started apart: names files, promises nothing to an adversary.
pub(super) fn fingerprint(bytes: &[u8]) -> String {
    let hash = |start: u64| bytes.iter().fold(start, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    format!("{:016x}{:016x}", hash(0xCBF2_9CE4_8422_2325), hash(0x9AE1_6A3B_2F90_404F))
}

/// `$MINVEL_CACHE`, or `minvel/kernels` in the user's cache folder.
fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("MINVEL_CACHE") {
        return Some(PathBuf::from(folder));
    }
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("LOCALAPPDATA").map(PathBuf::from));
    let base = base.or_else(|| std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache")))?;
    Some(base.join("minvel").join("kernels"))
}

const MAGIC: &[u8] = b"minvel kernel 1\n";

/// A whole entry of the cache; one that was cut short or changed is as good as none.
fn read(entry: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(entry).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (sum, code) = rest.split_at_checked(32)?;
    (sum == fingerprint(code).as_bytes()).then(|| code.to_vec())
}

/// Written aside and renamed, so that readers see all of it or nothing. A cache that cannot be written is no error.
fn write(entry: &Path, code: &[u8]) {
    let Some(folder) = entry.parent() else { return };
    let aside = entry.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    let whole = [MAGIC, fingerprint(code).as_bytes(), code].concat();
    // A new file, never one that is there already, be it a link of somebody else's.
    let new = || std::fs::OpenOptions::new().write(true).create_new(true).open(&aside);
    let written = std::fs::create_dir_all(folder).and_then(|()| new()?.write_all(&whole));
    if written.and_then(|()| std::fs::rename(&aside, entry)).is_err() {
        let _ = std::fs::remove_file(&aside);
    }
}

#[cfg(test)]
mod tests {
    use super::{read, write};

    #[test]
    fn a_damaged_entry_of_the_cache_is_ignored() {
        let entry = std::env::temp_dir().join(format!("minvel-cache-{}.cubin", std::process::id()));
        write(&entry, b"machine code");
        assert_eq!(read(&entry).as_deref(), Some(&b"machine code"[..]));
        let mut bytes = std::fs::read(&entry).expect("just written");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(&entry, &bytes).expect("a temporary file");
        assert_eq!(read(&entry), None);
        std::fs::write(&entry, &bytes[..20]).expect("a temporary file");
        assert_eq!(read(&entry), None);
        std::fs::remove_file(&entry).expect("a temporary file");
    }
}
