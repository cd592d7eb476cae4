//! The functions for JavaScript. An error is thrown as an `Error` with `code`, `field` and `params`.

use super::{Outcome, machine, replay as replays, scoring, strategies, validation};
use crate::field::FieldError;
use crate::replay::question::Replayable;
use js_sys::{Object, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

fn thrown(error: &FieldError) -> JsValue {
    let thrown = js_sys::Error::new(&error.message);
    let params = Object::new();
    let set = |object: &JsValue, name: &str, value: &JsValue| {
        // Of an object that was made here and is not sealed, which cannot fail.
        let _ = Reflect::set(object, &name.into(), value);
    };
    for (name, value) in &error.params {
        set(&params, name, &value.into());
    }
    set(&thrown, "code", &(&error.code).into());
    set(&thrown, "field", &(&error.field).into());
    set(&thrown, "params", &params);
    thrown.into()
}

fn written<T: Serialize>(outcome: Outcome<T>) -> Result<String, JsValue> {
    let written = outcome.and_then(|value| {
        serde_json::to_string(&value).map_err(|error| FieldError::new("", "internal", error.to_string()))
    });
    written.map_err(|error| thrown(&error))
}

/// See [`strategies::choices`].
#[wasm_bindgen]
pub fn choices() -> Result<String, JsValue> {
    written(Ok(strategies::choices()))
}

/// See [`strategies::describe`].
#[wasm_bindgen(js_name = describeStrategy)]
pub fn describe_strategy(json: &str) -> Result<String, JsValue> {
    written(strategies::describe(json))
}

/// See [`strategies::parse`].
#[wasm_bindgen(js_name = parsePolicy)]
pub fn parse_policy(json: &str) -> Result<String, JsValue> {
    written(strategies::parse(json))
}

/// See [`validation::tunnel`].
#[wasm_bindgen(js_name = validateTunnel)]
pub fn validate_tunnel(json: &str) -> Result<String, JsValue> {
    written(validation::tunnel(json))
}

/// See [`validation::settings`].
#[wasm_bindgen(js_name = validateSettings)]
pub fn validate_settings(json: &str) -> Result<String, JsValue> {
    written(validation::settings(json))
}

/// See [`scoring::leg`].
#[wasm_bindgen]
pub fn leg(json: &str) -> Result<String, JsValue> {
    written(scoring::leg(json))
}

/// See [`scoring::score`].
#[wasm_bindgen]
pub fn score(json: &str) -> Result<String, JsValue> {
    written(scoring::score(json))
}

/// See [`scoring::rank`].
#[wasm_bindgen]
pub fn rank(json: &str) -> Result<String, JsValue> {
    written(scoring::rank(json))
}

/// See [`replays::replay`].
#[wasm_bindgen]
pub fn replay(history: &str, json: &str) -> Result<String, JsValue> {
    written(replays::replay(history, json))
}

/// A history that is read once and replayed any number of times.
#[wasm_bindgen(js_name = History)]
#[derive(Debug)]
pub struct JsHistory(Replayable);

#[wasm_bindgen(js_class = History)]
impl JsHistory {
    /// See [`replays::prepare`].
    #[wasm_bindgen(constructor)]
    pub fn new(history: &str) -> Result<JsHistory, JsValue> {
        replays::prepare(history).map(Self).map_err(|error| thrown(&error))
    }

    /// See [`replays::answer`].
    pub fn replay(&self, json: &str) -> Result<String, JsValue> {
        written(replays::answer(&self.0, json))
    }
}

/// See [`machine::Machine`].
#[wasm_bindgen(js_name = Machine)]
#[derive(Debug)]
pub struct JsMachine(machine::Machine);

#[wasm_bindgen(js_class = Machine)]
impl JsMachine {
    /// See [`machine::Machine::new`].
    #[wasm_bindgen(constructor)]
    pub fn new(json: &str) -> Result<JsMachine, JsValue> {
        machine::Machine::new(json).map(Self).map_err(|error| thrown(&error))
    }

    /// See [`machine::Machine::evaluate`].
    pub fn evaluate(&mut self, json: &str) -> Result<String, JsValue> {
        written(self.0.evaluate(json))
    }

    /// See [`machine::Machine::accepted`].
    pub fn accepted(&mut self, json: &str) -> Result<String, JsValue> {
        written(self.0.accepted(json))
    }

    /// See [`machine::Machine::refused`].
    pub fn refused(&mut self, json: &str) -> Result<String, JsValue> {
        written(self.0.refused(json))
    }

    /// See [`machine::Machine::applied`].
    pub fn applied(&self) -> Result<String, JsValue> {
        written(Ok(self.0.applied()))
    }
}
