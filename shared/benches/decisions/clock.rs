//! Time, output and the one argument, on a machine and in Node.js.

#[cfg(not(target_arch = "wasm32"))]
mod here {
    use std::sync::OnceLock;
    use std::time::Instant;

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    pub(crate) fn now_ms() -> f64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let start = *START.get_or_init(Instant::now);
        Instant::now().duration_since(start).as_secs_f64() * 1000.0
    }

    pub(crate) fn print(line: &str) {
        println!("{line}");
    }

    pub(crate) fn is_quick() -> bool {
        std::env::args().any(|argument| argument == "--quick")
    }
}

#[cfg(target_arch = "wasm32")]
mod here {
    use js_sys::{Function, Reflect, global};
    use wasm_bindgen::{JsCast as _, JsValue};

    fn at(object: &JsValue, name: &str) -> JsValue {
        Reflect::get(object, &name.into()).expect("Node.js has it")
    }

    pub(crate) fn now_ms() -> f64 {
        let performance = at(&global(), "performance");
        let now: Function = at(&performance, "now").unchecked_into();
        now.call0(&performance).ok().and_then(|ms| ms.as_f64()).expect("a time")
    }

    pub(crate) fn print(line: &str) {
        let console = at(&global(), "console");
        let log: Function = at(&console, "log").unchecked_into();
        log.call1(&console, &line.into()).expect("a console");
    }

    pub(crate) fn is_quick() -> bool {
        let arguments = js_sys::Array::from(&at(&at(&global(), "process"), "argv"));
        arguments.iter().any(|argument| argument.as_string().as_deref() == Some("--quick"))
    }
}

pub(crate) use here::{is_quick, now_ms, print};
