//! Words of the settings screen.

use super::{Text, texts};

texts! {
    TITLE = "设置", "Settings";
    MEASURING = "探测", "Measuring";
    DECIDING = "切换规则", "Deciding";
    PAGE = "页面", "This page";
    ACCOUNT = "账号", "Account";
    MONITORING = "启用质量探测", "Measure the quality of tunnels";
    MONITORING_HINT = "关闭后不再探测，已生效的出口保持不变。", "When off, nothing is probed and the exits in force stay.";
    PROBE_TARGET = "探测目标", "Probe target";
    PROBE_TARGET_HINT = "每个出口都对它测量，主机:端口。", "What every exit is measured against, host:port.";
    ROUND_INTERVAL = "轮次间隔", "Between two rounds";
    PING_COUNT = "每段采样数", "Samples per leg and round";
    PING_TIMEOUT = "单次采样超时", "Deadline of a sample";
    CONFIRMATIONS = "确认轮数", "Rounds to confirm";
    CONFIRMATIONS_HINT = "同一出口须连续胜出的轮数", "The same exit must win so many rounds in a row";
    COOLDOWN = "切换冷却", "Cooldown";
    COOLDOWN_HINT = "同一持有节点两次切换之间的最短时间", "Between two switches of one owner";
    ADVANTAGE_MS = "最小优势（绝对）", "Smallest advantage";
    ADVANTAGE_RATIO = "最小优势（比例）", "Smallest advantage, share";
    ADVANTAGE_RATIO_HINT = "占当前得分的比例，0 到 1；两个条件取较大者", "Of the present score, 0 to 1; the larger of the two counts";
    LOSS_PENALTY = "每 1% 丢包的惩罚", "Penalty per percent of loss";
    APPLY_RETRY = "下发重试间隔", "Before a failed push is repeated";
    UNMEASURED_GRACE = "未测量宽限期", "Grace for an unmeasured exit";
    UNMEASURED_GRACE_HINT = "当前出口的代理离线但链路仍通时，继续使用的时间", "How long the exit in force is kept when its agent is away and the way to it is good";
    RETENTION = "历史保留天数", "History kept for";
    RULES = "规则", "Rules";
    RULES_CLASSIC = "经典（确认、优势、冷却）", "Classic (rounds, advantage)";
    RULES_ADAPTIVE = "自适应", "Adaptive";
    RANGE_HINT = "默认 {default}，可填 {min} 到 {max}", "Default {default}, {min} to {max}";
    DEFAULT_HINT = "默认 {default}", "Default {default}";
    UNIT_MS = "毫秒", "ms";
    UNIT_DAYS = "天", "days";
    UNIT_ROUNDS = "轮", "rounds";
    USE_DEFAULTS = "填入默认值", "Fill in the defaults";
    LANGUAGE = "语言", "Language";
    THEME = "外观", "Theme";
    THEME_SYSTEM = "跟随系统", "As the system";
    THEME_LIGHT = "浅色", "Light";
    THEME_DARK = "深色", "Dark";
    SAVED = "设置已保存", "Settings saved";
    CHANGE_PASSWORD = "修改密码", "Change password";
    CURRENT_PASSWORD = "当前密码", "Present password";
    NEW_PASSWORD = "新密码", "New password";
    NEW_PASSWORD_HINT = "至少 {count} 个字符", "At least {count} characters";
    REPEAT_PASSWORD = "再次输入新密码", "New password again";
    PASSWORD_CHANGED = "密码已修改", "Password changed";
    LOGGED_IN_AS = "当前用户：{name}", "Logged in as {name}";
    ROLE_ADMIN = "管理员", "Administrator";
    ROLE_VIEWER = "只读用户", "Viewer";
    USERS = "用户", "Users";
    USER_NEW = "添加用户", "Add a user";
    USER_EDIT_TITLE = "用户：{name}", "User {name}";
    USER_ROLE = "角色", "Role";
    USER_SINCE = "创建于 {time}", "since {time}";
    USER_YOU = "您自己", "you";
    USER_PASSWORD_HINT = "至少 8 个字符；请私下告知此用户，登录后可自行修改。", "At least 8 characters. Tell it to the user in private; it can be changed after logging in.";
    USER_PASSWORD_KEEP = "留空则不变；新密码会结束此用户的所有登录。", "Left empty it stays. A new one ends all sessions of the user.";
    USER_DELETE_TITLE = "删除用户", "Delete a user";
    USER_DELETE_LEAD = "删除“{name}”后，此用户立即退出登录，且无法再登录。操作日志会保留。", "“{name}” is logged out at once and cannot log in again. The audit log stays.";
}

/// Label, hint and unit of a numeric setting, by its JSON name.
pub fn number(field: &str) -> Option<(Text, Option<Text>, Option<Text>)> {
    Some(match field {
        "roundIntervalMs" => (ROUND_INTERVAL, None, Some(UNIT_MS)),
        "pingCount" => (PING_COUNT, None, None),
        "pingTimeoutMs" => (PING_TIMEOUT, None, Some(UNIT_MS)),
        "confirmations" => (CONFIRMATIONS, Some(CONFIRMATIONS_HINT), Some(UNIT_ROUNDS)),
        "cooldownMs" => (COOLDOWN, Some(COOLDOWN_HINT), Some(UNIT_MS)),
        "minAdvantageMs" => (ADVANTAGE_MS, None, Some(UNIT_MS)),
        "minAdvantageRatio" => (ADVANTAGE_RATIO, Some(ADVANTAGE_RATIO_HINT), None),
        "lossPenaltyMsPerPercent" => (LOSS_PENALTY, None, Some(UNIT_MS)),
        "applyRetryMs" => (APPLY_RETRY, None, Some(UNIT_MS)),
        "unmeasuredGraceMs" => (UNMEASURED_GRACE, Some(UNMEASURED_GRACE_HINT), Some(UNIT_MS)),
        "retentionDays" => (RETENTION, None, Some(UNIT_DAYS)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_numeric_setting_has_words() {
        for range in shared::best_exit::settings::RANGES {
            assert!(super::number(range.field).is_some(), "{}", range.field);
        }
    }
}
