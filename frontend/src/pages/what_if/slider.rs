//! A number to type or to slide: the slider goes over values that make a difference, the field takes any.

use crate::format;
use crate::i18n::{Text, lang, settings, t};
use crate::reactive::{RwSignal, Signal};
use crate::ui::TextField;
use leptos::prelude::*;
use shared::best_exit::settings::Range;
use shared::testid;

/// Where the slider of a setting stops.
fn stops(field: &str) -> &'static [f64] {
    match field {
        "confirmations" => &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0],
        "minAdvantageMs" => {
            &[0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0]
        }
        "minAdvantageRatio" => &[0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0],
        "lossPenaltyMsPerPercent" => {
            &[0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0]
        }
        _ => &[
            0.0,
            5000.0,
            10_000.0,
            15_000.0,
            30_000.0,
            60_000.0,
            120_000.0,
            300_000.0,
            600_000.0,
            1_800_000.0,
            3_600_000.0,
        ],
    }
}

/// The stop that is nearest to a value.
fn nearest(stops: &[f64], value: f64) -> usize {
    let far = |stop: &f64| (stop - value).abs();
    (0..stops.len()).min_by(|a, b| far(&stops[*a]).total_cmp(&far(&stops[*b]))).unwrap_or(0)
}

/// The slider and the field of a setting.
pub fn slider(range: Range, value: RwSignal<String>, error: Signal<Option<String>>) -> Option<AnyView> {
    let (label, hint, unit) = settings::number(range.field)?;
    let stops = stops(range.field);
    let at = move || nearest(stops, value.get().trim().parse().unwrap_or(range.min));
    let slid = move |event: leptos::ev::Event| {
        let stop = event_target_value(&event).parse::<usize>().ok().and_then(|place| stops.get(place));
        if let Some(stop) = stop {
            value.set(format::plain(*stop));
        }
    };
    let hint = hint.map(|hint: Text| Signal::derive(move || t(hint)().to_owned()));
    let hint = hint.unwrap_or_else(|| {
        let (min, max) = (format::plain(range.min), format::plain(range.max));
        let default = format::plain(shared::best_exit::Settings::default().number(range.field));
        Signal::derive(move || {
            let values = [("default", default.as_str()), ("min", min.as_str()), ("max", max.as_str())];
            settings::RANGE_HINT.with(lang(), &values)
        })
    });
    let id = testid::with(testid::WHAT_IF_FIELD, range.field);
    let field = match unit {
        Some(unit) => {
            view! { <TextField label value field=range.field error hint unit mode="decimal" testid=id /> }
                .into_any()
        }
        None => view! { <TextField label value field=range.field error hint mode="decimal" testid=id /> }
            .into_any(),
    };
    let spoken = move || match unit {
        Some(unit) => format!("{} {}", value.get(), t(unit)()),
        None => value.get(),
    };
    Some(
        view! {
            <div class="slider">
                {field}
                <input type="range" min="0" max=(stops.len() - 1).to_string() step="1"
                    aria-label=t(label) aria-valuetext=spoken
                    data-testid=testid::with(testid::WHAT_IF_SLIDER, range.field)
                    prop:value=move || at().to_string() on:input=slid />
            </div>
        }
        .into_any(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::best_exit::Settings;
    use shared::best_exit::settings::RANGES;

    #[test]
    fn sliders_stop_at_the_defaults_and_within_the_ranges() {
        for range in RANGES {
            let (stops, default) = (stops(range.field), Settings::default().number(range.field));
            if super::super::ask::is_asked(range.field) {
                assert_eq!(stops[nearest(stops, default)], default, "{}", range.field);
                assert!(stops.iter().all(|stop| (range.min..=range.max).contains(stop)), "{}", range.field);
                assert!(stops.is_sorted());
            }
        }
    }
}
