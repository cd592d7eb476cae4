//! Pointer and keys on a chart.

use super::path::Frame;
use super::plot::Plot;
use super::span::View;
use crate::clock;
use leptos::prelude::untrack;
use shared::api::WallMs;
use wasm_bindgen::JsCast as _;

/// A press that moves less is no drag.
const STILL: f64 = 6.0;

/// A finger on the chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finger {
    id: i32,
    x: f64,
    /// The moment that it holds, when there are two.
    at: WallMs,
}

/// The chart that an event happened on, and where on it.
fn place(event: &web_sys::PointerEvent) -> Option<(web_sys::Element, f64)> {
    let target: web_sys::Element = event.target()?.dyn_into().ok()?;
    let chart = target.closest("[role=slider]").ok()??;
    let x = f64::from(event.client_x()) - chart.get_bounding_client_rect().left();
    Some((chart, x))
}

impl Plot {
    fn frame_now(self) -> Frame {
        untrack(|| self.frame())
    }

    /// Whatever happens to the chart.
    pub fn heard(self, event: &web_sys::Event) {
        let pointer = event.unchecked_ref::<web_sys::PointerEvent>();
        match event.type_().as_str() {
            "pointerdown" => self.pressed(pointer),
            "pointermove" => self.moved(pointer),
            "pointerup" => {
                self.lifted(pointer);
                self.released();
            }
            // A finger that begins to scroll the page is no longer the chart's.
            "pointercancel" => {
                self.lifted(pointer);
                self.drag.set(None);
            }
            "pointerleave" => self.left(pointer),
            "dblclick" => self.board.reset(),
            "keydown" => self.key(event.unchecked_ref()),
            "focus" => self.go_to(None),
            // The screen may be gone, and the focus with it.
            _ => _ = self.board.cursor.try_set(None),
        }
    }

    /// A mouse begins to choose a stretch; a finger points, and two hold what is under them.
    fn pressed(self, event: &web_sys::PointerEvent) {
        let Some((chart, x)) = place(event) else { return };
        if event.pointer_type() == "mouse" {
            if event.button() == 0 {
                self.drag.set(Some((x, x)));
            }
        } else {
            self.put_down(event, x);
        }
        // Goes on outside of the chart.
        let _ = chart.set_pointer_capture(event.pointer_id());
    }

    fn put_down(self, event: &web_sys::PointerEvent, x: f64) {
        let frame = self.frame_now();
        let count = self.fingers.try_update(|fingers| {
            // The first of all fingers: what was not seen to be lifted is gone.
            if event.is_primary() {
                fingers.clear();
            }
            fingers.push(Finger { id: event.pointer_id(), x, at: 0 });
            for finger in fingers.iter_mut() {
                finger.at = frame.at(finger.x);
            }
            fingers.len()
        });
        if count == Some(1) {
            self.point_at(x);
        } else {
            self.board.cursor.set(None);
        }
    }

    /// What remains is held from here on.
    fn lifted(self, event: &web_sys::PointerEvent) {
        let frame = self.frame_now();
        let _ = self.fingers.try_update(|fingers| {
            fingers.retain(|finger| finger.id != event.pointer_id());
            for finger in fingers.iter_mut() {
                finger.at = frame.at(finger.x);
            }
        });
    }

    /// Moves a finger. Answers the first two, if there are as many.
    fn held(self, id: i32, x: f64) -> Option<[Finger; 2]> {
        let moved = self.fingers.try_update(|fingers| {
            let finger = fingers.iter_mut().find(|finger| finger.id == id)?;
            finger.x = x;
            fingers.first_chunk().copied()
        });
        moved.flatten()
    }

    /// Points, and widens the stretch that is being chosen; two fingers draw the axis out and together.
    fn moved(self, event: &web_sys::PointerEvent) {
        let Some((_, x)) = place(event) else { return };
        if let Some(held) = self.held(event.pointer_id(), x) {
            let frame = self.frame_now();
            let held = held.map(|finger| (finger.at, frame.share(finger.x)));
            if let Some(view) = View::held(held, clock::now()) {
                self.board.view.set(view);
            }
            return;
        }
        self.point_at(x);
        if let Some((from, _)) = self.drag.get_untracked() {
            self.drag.set(Some((from, x)));
        }
    }

    fn point_at(self, x: f64) {
        self.board.cursor.set(Some(self.frame_now().at(x)));
    }

    /// Shows the chosen stretch.
    fn released(self) {
        let Some((from, to)) = self.drag.get_untracked() else { return };
        self.drag.set(None);
        if (from - to).abs() >= STILL {
            let (frame, now) = (self.frame_now(), clock::now());
            let (from, to) = (frame.at(from.min(to)), frame.at(from.max(to)));
            self.board.view.set(View::between(from, to, now));
        }
    }

    /// A mouse that is gone points at nothing. A finger that is lifted leaves what it pointed at to be read.
    fn left(self, event: &web_sys::PointerEvent) {
        if event.pointer_type() == "mouse" && self.drag.get_untracked().is_none() {
            self.board.cursor.set(None);
        }
    }

    /// Points at a step; none: at the newest.
    fn go_to(self, place: Option<usize>) {
        let at = untrack(|| self.shown()).and_then(|shown| {
            let last = shown.series.times.len().checked_sub(1)?;
            Some(shown.series.times[place.unwrap_or(last).min(last)] + shown.step_ms / 2)
        });
        self.board.cursor.set(at);
    }

    /// Arrows go from step to step, with Shift through time; plus and minus zoom; 0 and Escape go back.
    fn key(self, event: &web_sys::KeyboardEvent) {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let board = self.board;
        let shown = untrack(|| self.shown());
        let count = shown.as_ref().map_or(0, |shown| shown.series.times.len());
        let here = shown.and_then(|shown| untrack(|| self.here(&shown)));
        match event.key().as_str() {
            "ArrowLeft" | "ArrowDown" if event.shift_key() => board.shift(false),
            "ArrowRight" | "ArrowUp" if event.shift_key() => board.shift(true),
            "ArrowLeft" | "ArrowDown" => match here {
                Some(0) => board.shift(false),
                place => self.go_to(place.map(|place| place - 1)),
            },
            "ArrowRight" | "ArrowUp" => match here {
                Some(place) if place + 1 >= count => board.shift(true),
                place => self.go_to(place.map(|place| place + 1)),
            },
            "PageUp" => board.shift(true),
            "PageDown" => board.shift(false),
            "Home" => self.go_to(Some(0)),
            "End" => self.go_to(None),
            "+" | "=" => board.zoom(true),
            "-" | "_" => board.zoom(false),
            "0" | "Escape" => {
                self.drag.set(None);
                board.reset();
            }
            _ => return,
        }
        event.prevent_default();
    }
}
