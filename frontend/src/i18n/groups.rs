//! Words of groups whose choice is made ahead of connections.

use super::texts;

texts! {
    EXITS = "出口", "Exits";
    HOP = "第 {n} 跳", "Hop {n}";
    IN_USE = "{network}：{name} — {why}", "{network}: {name} — {why}";
    WHY_CHOSEN = "手动选择", "chosen by hand";
    WHY_DEFAULT = "默认；没有人选择", "the default; nobody has chosen";
    WHY_FIXED = "由策略指定", "named by the strategy";
    WHY_FALLBACK = "指定的节点不可用", "the node that the strategy names is dead";
    WHY_FASTEST = "最快，或没有明显更快的", "the fastest, or none is clearly faster";
    WHY_UNTESTED = "还没有测试结果", "nothing is measured yet";
    WHY_LAST_RESORT = "全部不可用，只能尝试", "all are dead, and one has to be tried";
    CHANGED = "{ago}前从 {from} 切换：{why}", "{ago} ago, from {from}: {why}";
    BECAUSE_DIED = "它失效了", "it died";
    BECAUSE_BETTER = "新的更快", "the new one is faster";
    BECAUSE_RETURNED = "指定的节点已恢复", "the fixed one is back";
    BECAUSE_CHOSEN = "手动选择", "chosen by hand";
    NOT_REPORTED = "代理程序还没有报告。", "The agent has not reported yet.";
    MEMBER = "节点", "Node";
    STATE = "状态", "State";
    LATENCY = "延迟", "Latency";
    MEASURED = "{last}，平均 {average}，{time}前", "{last}, average {average}, {time} ago";
    USED_FOR = "使用中：{networks}", "In use: {networks}";
    ALIVE = "可用", "alive";
    DEAD = "不可用（连续失败 {n} 次）", "dead ({n} failures in a row)";
    NO_DATA = "无数据", "no data";
    NOT_APPLICABLE = "不适用", "not applicable";
    USE = "选用", "Use";
    USE_NAMED = "选用 {name}", "Use {name}";
    CHANGE_TITLE = "更改手动选择", "Change the choice";
    CHANGE = "确认更改", "Change";
    CHOOSE_BODY = "{owner} 的新连接将使用 {name}，直到再次更改。", "New connections of {owner} will use {name}, until told otherwise.";
    CLEAR_BODY = "取消 {owner} 的手动选择；新连接将使用默认节点。", "The choice of {owner} is taken back; new connections will use the default.";
    INTERRUPTS = "原节点上的连接会被断开。", "Connections on the node that is left will be ended.";
    CLEAR = "取消选择", "Take back";
    CHOSEN = "已选择：{name}", "Chosen: {name}";
    CLEARED = "已取消选择", "Taken back";
    CHOSEN_BY = "{author} 于 {time} 选择了 {name}", "{name}, chosen by {author} at {time}";
    CHOSEN_AT_AGENT = "在代理程序上选择了 {name}", "{name}, chosen at the agent";
    TAKING_BACK = "选择已取消", "The choice is taken back";
    PENDING = "等待代理程序确认", "the agent is still to confirm";
    OFFLINE = "节点离线，连接后生效", "the node is offline; it takes effect when it returns";
    REFUSED = "代理程序拒绝：{error}", "refused by the agent: {error}";
}
