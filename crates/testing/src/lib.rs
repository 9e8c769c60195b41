//! Tests that need what not every machine has: a data set, weights, a GPU.
//!
//! Each test declares its [`Need`]s. If one is missing, the test is reported as ignored, with the reason on its line, and the last
//! line of the binary counts the skipped tests by reason; `.ci/run` adds these lines up. If the need is required on this
//! machine (of data sets: if `MINVEL_DATA` is set), the test fails instead. For binaries with `harness = false`.
//! **Checked by** the tests below, and by harness.rs.

mod compare;
mod data;
#[cfg(test)]
mod harness;
mod scratch;
#[cfg(feature = "state-dict")]
pub mod state_dict;

pub use compare::{
    estimate, gauss_hermite, order, sum, tensor_rule, within_digits, within_order, within_sigma, within_ulps,
};
pub use data::data_set;
use libtest_mimic::{Arguments, Completion, Failed, FormatSetting, Trial};
pub use scratch::{Scratch, fresh};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that a test needs and a machine may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it is, as in `the data set mnist`.
    pub what: String,
    /// Whether it is here.
    pub here: bool,
    /// How to get it, as in `minvel data fetch mnist`.
    pub remedy: String,
    /// Why it must be here, as in `MINVEL_DATA is set`: its absence is then a failure.
    pub required: Option<String>,
}

impl Need {
    /// `None` if it is here; how a test ends that lacks it otherwise.
    fn absence(&self) -> Option<Result<Completion, Failed>> {
        let Need { what, remedy, .. } = self;
        match &self.required {
            _ if self.here => None,
            Some(why) => Some(Err(format!("{what} is missing, although {why}: {remedy}").into())),
            None => Some(Ok(Completion::ignored_with(format!("needs {what}: {remedy}")))),
        }
    }
}

/// A GPU, or why there is none. If programs are asked to run on one (`MINVEL_DEVICE`), there must be one.
pub fn a_gpu(found: Result<(), String>) -> Need {
    let asked = std::env::var("MINVEL_DEVICE").ok().filter(|device| device.starts_with("cuda"));
    Need {
        what: "a GPU".into(),
        here: found.is_ok(),
        remedy: "crates/engine/emulator/run emulates one".into(),
        required: asked.zip(found.err()).map(|(device, why)| format!("MINVEL_DEVICE is {device} ({why})")),
    }
}

/// The card of crates/engine/emulator, which fails on request.
pub fn emulated_card(here: bool) -> Need {
    Need {
        what: "the emulated card".into(),
        here,
        remedy: "crates/engine/emulator/run emulates one".into(),
        required: None,
    }
}

/// A test: its name, what it needs, what it does.
pub struct Test {
    name: String,
    needs: Vec<Need>,
    body: Box<dyn FnOnce() + Send>,
}

impl Test {
    /// By the path of its module, its own name, and what it does, which panics if it fails; [`test!`] is shorter.
    pub fn new(module: &str, name: &str, body: impl FnOnce() + Send + 'static) -> Self {
        let name = match module.split_once("::") {
            Some((_binary, module)) => format!("{module}::{name}"),
            None => name.to_string(),
        };
        Test { name, needs: vec![], body: Box::new(body) }
    }

    /// Adds a need.
    pub fn needs(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }
}

/// The test of a function without arguments, named after it.
#[macro_export]
macro_rules! test {
    ($function:ident) => {
        $crate::Test::new(module_path!(), stringify!($function), $function)
    };
}

/// Prints like `println!`, but only if `--nocapture` is given: the output of these tests is not captured.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => {
        if $crate::wordy() {
            println!($($words)*)
        }
    };
}

/// Whether `--nocapture` is given.
pub fn wordy() -> bool {
    std::env::args().any(|argument| argument == "--nocapture" || argument == "--no-capture")
}

/// How many tests were skipped for lack of what, and how to get it.
type Skipped = BTreeMap<(String, String), usize>;

/// Runs the tests that the arguments of the command line select, as the built-in harness would; says what was skipped.
pub fn run(tests: impl IntoIterator<Item = Test>) -> ExitCode {
    let arguments = Arguments::from_args();
    let (conclusion, skipped) = results(&arguments, tests);
    if !skipped.is_empty() && arguments.format != Some(FormatSetting::Json) {
        println!("{}\n", summary(&skipped));
    }
    conclusion.exit_code()
}

fn results(arguments: &Arguments, tests: impl IntoIterator<Item = Test>) -> (libtest_mimic::Conclusion, Skipped) {
    let skipped = Arc::new(Mutex::new(Skipped::new()));
    let trial = |test: Test| {
        let skipped = skipped.clone();
        Trial::ignorable_test(test.name, move || {
            let missing = test.needs.iter().find_map(|need| Some((need, need.absence()?)));
            let Some((need, outcome)) = missing else {
                (test.body)();
                return Ok(Completion::Completed);
            };
            if outcome.is_ok() {
                let reason = (need.what.clone(), need.remedy.clone());
                *skipped.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
            }
            outcome
        })
    };
    let conclusion = libtest_mimic::run(arguments, tests.into_iter().map(trial).collect());
    let skipped = std::mem::take(&mut *skipped.lock().unwrap_or_else(PoisonError::into_inner));
    (conclusion, skipped)
}

/// One line; `.ci/run` reads it, and takes `; ` for the end of a reason.
fn summary(skipped: &Skipped) -> String {
    let total: usize = skipped.values().sum();
    let reason = |((what, remedy), count): (&(String, String), &usize)| {
        format!("{count} {} {what} ({remedy})", if *count == 1 { "needs" } else { "need" })
    };
    let reasons: Vec<String> = skipped.iter().map(reason).collect();
    format!("skipped {total} {}: {}", if total == 1 { "test" } else { "tests" }, reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(what: &str, here: bool, required: Option<&str>) -> Need {
        Need { what: what.into(), here, remedy: format!("get {what}"), required: required.map(Into::into) }
    }

    /// How many pass, fail and are ignored, what is printed for each test, and the last line.
    fn counts(name: &str, tests: Vec<Test>) -> ([u64; 3], String, String) {
        let log = std::env::temp_dir().join(format!("minvel-testing-{name}-{}", std::process::id()));
        let logfile = log.to_str().map(str::to_string);
        let arguments = Arguments { test_threads: Some(1), logfile, ..Arguments::default() };
        let (conclusion, skipped) = results(&arguments, tests);
        let printed = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(log).unwrap();
        let counts = [conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored];
        (counts, printed, summary(&skipped))
    }

    #[test]
    fn a_test_that_lacks_something_is_ignored_and_counted_by_reason() {
        let test = |name: &str| Test::new("binary", name, || ());
        let tests = vec![
            test("one").needs(need("a cat", true, None)).needs(need("a dog", false, None)),
            test("two").needs(need("a cat", true, Some("it is written"))),
            test("three"),
            test("four").needs(need("a dog", false, None)),
            test("five").needs(need("an owl", false, None)),
        ];
        let (counts, printed, said) = counts("lacks", tests);
        assert_eq!(counts, [2, 0, 3]);
        assert!(printed.lines().any(|line| line.ends_with("one   ... ignored (needs a dog: get a dog)")), "{printed}");
        assert_eq!(said, "skipped 3 tests: 2 need a dog (get a dog); 1 needs an owl (get an owl)");
    }

    #[test]
    fn a_test_that_lacks_what_must_be_there_fails_and_says_why() {
        let owed = need("the data set mnist", false, Some("MINVEL_DATA is set"));
        let Some(Err(failed)) = owed.absence() else { panic!("it is missing, and required") };
        let said = failed.message().expect("a reason");
        assert_eq!(said, "the data set mnist is missing, although MINVEL_DATA is set: get the data set mnist");
        let tests = vec![Test::new("binary", "one", || ()).needs(owed)];
        let (counts, printed, _) = counts("owed", tests);
        assert!(counts == [0, 1, 0] && printed.contains(said), "{printed}");
    }

    #[test]
    fn bodies_run_and_fail_by_panicking() {
        let tests = vec![Test::new("binary", "one", || panic!("it fails")).needs(need("a cat", true, None))];
        let (counts, printed, _) = counts("panics", tests);
        assert!(counts == [0, 1, 0] && printed.contains("it fails"), "{printed}");
    }

    #[test]
    fn names_hold_the_module_without_the_binary() {
        assert_eq!(Test::new("real_data::digits", "one", || ()).name, "digits::one");
        assert_eq!(Test::new("cuda", "one", || ()).name, "one");
        fn named_after_it() {}
        assert_eq!(test!(named_after_it).name, "tests::named_after_it");
    }
}
