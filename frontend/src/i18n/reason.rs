//! Why an exit was, or was not, switched, in words.

use super::{Lang, Text, texts};
use crate::format;
use shared::best_exit::{LegName, Reason, Trigger, Why};
use shared::ids::NodeId;

texts! {
    NO_DECISION = "还没有完成探测，暂按保存的顺序使用出口。", "No round has been evaluated yet; the saved order is used.";
    SINGLE_EXIT = "只有一个出口，无需选择。", "There is only one exit, so there is nothing to choose.";
    INCOMPLETE = "隧道已停用或不完整。", "The tunnel is disabled or incomplete.";
    PAUSED = "质量探测已关闭，保持当前出口。", "Measuring is off; the exit in force stays.";
    OWNER_OFFLINE = "链路持有节点离线或没有按时应答，本轮跳过。", "The owner is offline or did not answer in time; this round is skipped.";
    ALL_EXITS_FAILED = "所有出口都探测失败，保持当前顺序不变。", "Every exit failed its probes, so nothing is changed.";
    CURRENT_UNMEASURED = "当前出口的代理程序不在线，但到它的链路良好，再保留 {remaining}。", "The agent of the exit in force is away, but the way to it is good; it is kept for another {remaining}.";
    CURRENT_IS_BEST = "当前出口就是最优的。", "The exit in force is the best.";
    INSUFFICIENT_ADVANTAGE = "{exit} 更好，但只领先 {have}，需要 {need}。", "{exit} is better, but only by {have}; {need} are needed.";
    CONFIRMING = "{exit} 更好，正在确认：第 {rounds} / {needed} 轮。", "{exit} is better and being confirmed: round {rounds} of {needed}.";
    COOLDOWN = "{exit} 更好且已确认，冷却还剩 {remaining}。", "{exit} is better and confirmed; the cooldown lasts another {remaining}.";
    APPLY_RETRY_WAIT = "{exit} 更好，但上次下发失败，{remaining} 后重试。", "{exit} is better, but the last push failed; it is repeated in {remaining}.";
    PINNED = "{exit} 已被固定，且工作正常。", "{exit} is pinned, and it works.";
    PIN_FAILED = "固定的 {exit} 探测失败；在其他出口中：{others}", "The pinned {exit} fails; among the others: {others}";
    SWITCHED_BETTER = "已从 {from} 切换到 {to}，领先 {advantage}。", "Switched from {from} to {to}, better by {advantage}.";
    SWITCHED_ANYHOW = "已从 {from} 切换到 {to}。", "Switched from {from} to {to}.";
    SWITCHED_FAILED = "{from} 探测失败，已切换到 {to}。", "{from} failed, so it was switched to {to}.";
    SWITCHED_FIRST = "已选用 {to}。", "{to} was put in front.";
    APPLY_FAILED = "切换到 {exit} 时下发失败：{error}", "{exit} could not be put in front: {error}";

    SUSPECT = "{exit} 本轮全部失败（{leg}），再看下一轮。", "A whole round of {exit} failed ({leg}); the next one tells.";
    HELD = "{exit} 更好，但样本还不够：{samples} / {needed}。", "{exit} is better, but too little is known of it: {samples} of {needed} samples.";
    OWNER_LINE = "所有出口同时失败：是链路持有节点自己的线路，保持不变。", "All exits failed at once: it is the owner's own line, so nothing is changed.";
    TARGET_FAILED = "探测目标对所有出口都失败，保持不变。", "The probe target failed for every exit, so nothing is changed.";
    LEG_A = "持有节点到出口", "owner to exit";
    LEG_B = "出口到探测目标", "exit to probe target";
    WHY_DOWN = "{said}原因：{leg} 不通。", "{said} {leg} does not work.";
    WHY_STEP = "{said}原因：{leg} 延迟连续 {rounds} 轮升高，需要 {need}。", "{said} The latency of {leg} rose for {rounds} rounds; {need} were needed.";
    WHY_LOSS = "{said}原因：{leg} 丢包增多（{rounds} 轮），需要 {need}。", "{said} {leg} loses more than before, over {rounds} rounds; {need} were needed.";
    WHY_WINDOW = "{said}主要是 {leg}（{rounds} 轮平均），需要 {need}。", "{said} Mostly {leg}, over {rounds} rounds; {need} were needed.";
    WHY_UNMEASURED = "{said}原因：{leg} 长时间没有测量。", "{said} {leg} has not been measured for long.";

    SHORT_NO_DECISION = "等待探测", "no decision yet";
    SHORT_SINGLE_EXIT = "单一出口", "single exit";
    SHORT_INCOMPLETE = "不完整", "incomplete";
    SHORT_PAUSED = "已暂停", "paused";
    SHORT_OWNER_OFFLINE = "持有节点离线", "owner offline";
    SHORT_ALL_EXITS_FAILED = "出口全部失败", "all exits failed";
    SHORT_CURRENT_UNMEASURED = "当前出口未测量", "current exit not measured";
    SHORT_CURRENT_IS_BEST = "当前最优", "current is best";
    SHORT_INSUFFICIENT_ADVANTAGE = "优势不足", "advantage too small";
    SHORT_CONFIRMING = "确认中", "confirming";
    SHORT_COOLDOWN = "冷却中", "cooldown";
    SHORT_APPLY_RETRY_WAIT = "等待重试", "waiting to retry";
    SHORT_PINNED = "已固定", "pinned";
    SHORT_PIN_FAILED = "固定出口失败", "pinned exit fails";
    SHORT_SWITCHED = "已切换", "switched";
    SHORT_APPLY_FAILED = "下发失败", "push failed";
    SHORT_SUSPECT = "可疑", "suspect";
    SHORT_HELD = "样本不足", "not known enough";
    SHORT_OWNER_LINE = "持有节点线路故障", "owner's line";
    SHORT_TARGET_FAILED = "探测目标故障", "target failed";
    SHORT_UNKNOWN = "未知", "unknown";
}

/// A reason as a sentence with its numbers; `name` turns a node id into what people call it.
pub fn sentence(reason: &Reason, lang: Lang, name: &dyn Fn(NodeId) -> String) -> String {
    sentence_at(reason, lang, name, 0)
}

/// The same, for a reason whose waits began `elapsed_ms` ago.
pub fn sentence_at(reason: &Reason, lang: Lang, name: &dyn Fn(NodeId) -> String, elapsed_ms: i64) -> String {
    let left = |remaining_ms: u64| {
        let remaining = i64::try_from(remaining_ms).unwrap_or(i64::MAX).saturating_sub(elapsed_ms);
        format::countdown(remaining, lang)
    };
    match reason {
        Reason::NoDecision => NO_DECISION.say(lang).into(),
        Reason::SingleExit => SINGLE_EXIT.say(lang).into(),
        Reason::Incomplete => INCOMPLETE.say(lang).into(),
        Reason::Paused => PAUSED.say(lang).into(),
        Reason::OwnerOffline => OWNER_OFFLINE.say(lang).into(),
        Reason::AllExitsFailed => ALL_EXITS_FAILED.say(lang).into(),
        Reason::CurrentUnmeasured { remaining_ms } => {
            CURRENT_UNMEASURED.with(lang, &[("remaining", &left(*remaining_ms))])
        }
        Reason::CurrentIsBest => CURRENT_IS_BEST.say(lang).into(),
        Reason::InsufficientAdvantage { exit, have_ms, need_ms } => INSUFFICIENT_ADVANTAGE.with(
            lang,
            &[("exit", &name(*exit)), ("have", &format::ms(*have_ms)), ("need", &format::ms(*need_ms))],
        ),
        Reason::Confirming { exit, rounds, needed } => {
            let values =
                [("exit", name(*exit)), ("rounds", rounds.to_string()), ("needed", needed.to_string())];
            fill_owned(CONFIRMING, lang, &values)
        }
        Reason::Cooldown { exit, remaining_ms } => {
            fill_owned(COOLDOWN, lang, &[("exit", name(*exit)), ("remaining", left(*remaining_ms))])
        }
        Reason::ApplyRetryWait { exit, remaining_ms } => {
            fill_owned(APPLY_RETRY_WAIT, lang, &[("exit", name(*exit)), ("remaining", left(*remaining_ms))])
        }
        Reason::Pinned { exit } => fill_owned(PINNED, lang, &[("exit", name(*exit))]),
        Reason::PinFailed { exit, among_others } => {
            let others = sentence_at(among_others, lang, name, elapsed_ms);
            fill_owned(PIN_FAILED, lang, &[("exit", name(*exit)), ("others", others)])
        }
        Reason::Suspect { exit, leg } => {
            fill_owned(SUSPECT, lang, &[("exit", name(*exit)), ("leg", leg_words(*leg).say(lang).to_owned())])
        }
        Reason::Held { exit, samples, needed } => {
            let values =
                [("exit", name(*exit)), ("samples", samples.to_string()), ("needed", needed.to_string())];
            fill_owned(HELD, lang, &values)
        }
        Reason::OwnerLine => OWNER_LINE.say(lang).into(),
        Reason::TargetFailed => TARGET_FAILED.say(lang).into(),
        Reason::Switched { from, to, advantage_ms, why: Some(why) } => {
            let plain = Reason::Switched { from: *from, to: *to, advantage_ms: *advantage_ms, why: None };
            explained(sentence_at(&plain, lang, name, elapsed_ms), why, lang)
        }
        Reason::Switched { from: None, to, .. } => fill_owned(SWITCHED_FIRST, lang, &[("to", name(*to))]),
        // A pin switches to a worse exit too.
        Reason::Switched { from: Some(from), to, advantage_ms: Some(ms), .. } if *ms <= 0.0 => {
            fill_owned(SWITCHED_ANYHOW, lang, &[("from", name(*from)), ("to", name(*to))])
        }
        Reason::Switched { from: Some(from), to, advantage_ms: Some(ms), .. } => {
            let values = [("from", name(*from)), ("to", name(*to)), ("advantage", format::ms(*ms))];
            fill_owned(SWITCHED_BETTER, lang, &values)
        }
        Reason::Switched { from: Some(from), to, advantage_ms: None, .. } => {
            fill_owned(SWITCHED_FAILED, lang, &[("from", name(*from)), ("to", name(*to))])
        }
        Reason::ApplyFailed { exit, error } => {
            fill_owned(APPLY_FAILED, lang, &[("exit", name(*exit)), ("error", error.clone())])
        }
    }
}

fn leg_words(leg: LegName) -> Text {
    match leg {
        LegName::A => LEG_A,
        LegName::B => LEG_B,
    }
}

/// The sentence of a switch with what the adaptive rules saw.
fn explained(said: String, why: &Why, lang: Lang) -> String {
    let text = match why.trigger {
        Trigger::Down => WHY_DOWN,
        Trigger::Step => WHY_STEP,
        Trigger::Loss => WHY_LOSS,
        Trigger::Window => WHY_WINDOW,
        Trigger::Unmeasured => WHY_UNMEASURED,
    };
    let values = [
        ("said", said),
        ("leg", leg_words(why.leg).say(lang).to_owned()),
        ("rounds", why.rounds.to_string()),
        ("need", format::ms(why.need_ms.unwrap_or(0.0))),
    ];
    fill_owned(text, lang, &values)
}

fn fill_owned(text: Text, lang: Lang, values: &[(&str, String)]) -> String {
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (*key, value.as_str())).collect();
    text.with(lang, &values)
}

/// A reason in a word or two, by its code.
pub fn short(code: &str) -> Text {
    match code {
        "no_decision" => SHORT_NO_DECISION,
        "single_exit" => SHORT_SINGLE_EXIT,
        "incomplete" => SHORT_INCOMPLETE,
        "paused" => SHORT_PAUSED,
        "owner_offline" => SHORT_OWNER_OFFLINE,
        "all_exits_failed" => SHORT_ALL_EXITS_FAILED,
        "current_unmeasured" => SHORT_CURRENT_UNMEASURED,
        "current_is_best" => SHORT_CURRENT_IS_BEST,
        "insufficient_advantage" => SHORT_INSUFFICIENT_ADVANTAGE,
        "confirming" => SHORT_CONFIRMING,
        "cooldown" => SHORT_COOLDOWN,
        "apply_retry_wait" => SHORT_APPLY_RETRY_WAIT,
        "pinned" => SHORT_PINNED,
        "pin_failed" => SHORT_PIN_FAILED,
        "switched" => SHORT_SWITCHED,
        "apply_failed" => SHORT_APPLY_FAILED,
        "suspect" => SHORT_SUSPECT,
        "held" => SHORT_HELD,
        "owner_line" => SHORT_OWNER_LINE,
        "target_failed" => SHORT_TARGET_FAILED,
        _ => SHORT_UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn every_reason() -> Vec<Reason> {
        let exit = NodeId(31);
        vec![
            Reason::NoDecision,
            Reason::SingleExit,
            Reason::Incomplete,
            Reason::Paused,
            Reason::OwnerOffline,
            Reason::AllExitsFailed,
            Reason::CurrentUnmeasured { remaining_ms: 42_000 },
            Reason::CurrentIsBest,
            Reason::InsufficientAdvantage { exit, have_ms: 12.5, need_ms: 40.0 },
            Reason::Confirming { exit, rounds: 2, needed: 3 },
            Reason::Cooldown { exit, remaining_ms: 18_000 },
            Reason::ApplyRetryWait { exit, remaining_ms: 9000 },
            Reason::Pinned { exit },
            Reason::PinFailed { exit, among_others: Box::new(Reason::CurrentIsBest) },
            Reason::Switched { from: Some(NodeId(30)), to: exit, advantage_ms: Some(55.0), why: None },
            Reason::Switched { from: Some(NodeId(30)), to: exit, advantage_ms: None, why: None },
            Reason::Switched { from: None, to: exit, advantage_ms: None, why: None },
            Reason::Suspect { exit, leg: LegName::A },
            Reason::Held { exit, samples: 8, needed: 20 },
            Reason::OwnerLine,
            Reason::TargetFailed,
            Reason::Switched {
                from: Some(NodeId(30)),
                to: exit,
                advantage_ms: Some(55.0),
                why: Some(Why { trigger: Trigger::Window, leg: LegName::B, need_ms: Some(20.0), rounds: 16 }),
            },
            Reason::ApplyFailed { exit, error: "timed out".into() },
        ]
    }

    #[test]
    fn every_code_has_words_with_its_numbers_and_names_in_both_languages() {
        let reasons = every_reason();
        let codes: BTreeSet<&str> = reasons.iter().map(Reason::code).collect();
        assert_eq!(codes, BTreeSet::from(Reason::CODES), "the list above is complete");
        for reason in &reasons {
            for lang in Lang::ALL {
                let said = sentence(reason, lang, &|id| format!("<{id}>"));
                assert!(!said.is_empty() && !said.contains('{'), "{said}");
                // Whatever the panel knows reaches the reader: each value of the JSON is in the sentence.
                let json = serde_json::to_value(reason).unwrap();
                for (key, value) in json.as_object().unwrap() {
                    let expected = match key.as_str() {
                        "exit" | "to" | "from" if value.is_number() => format!("<{value}>"),
                        "rounds" | "needed" | "samples" => value.to_string(),
                        "remainingMs" => (value.as_u64().unwrap() / 1000).to_string(),
                        "haveMs" | "needMs" | "advantageMs" if value.is_number() => {
                            format::ms(value.as_f64().unwrap())
                        }
                        "error" => value.as_str().unwrap().to_owned(),
                        _ => continue,
                    };
                    assert!(said.contains(&expected), "{said} lacks {expected}");
                }
            }
            assert_ne!(short(reason.code()), SHORT_UNKNOWN, "{}", reason.code());
        }
    }

    #[test]
    fn waits_go_down_with_time() {
        let reason = Reason::Cooldown { exit: NodeId(1), remaining_ms: 18_000 };
        let said = sentence_at(&reason, Lang::En, &|_| "x".into(), 6000);
        assert!(said.contains("12 s"), "{said}");
        let over = sentence_at(&reason, Lang::En, &|_| "x".into(), 60_000);
        assert!(over.contains("0 s"), "{over}");
    }
}
