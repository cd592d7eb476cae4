//! Words of the what-if screen.

use super::texts;

texts! {
    OPEN = "假如…", "What if";
    TITLE = "假如：{name}", "What if: {name}";
    LEAD = "用其他设置重放已记录的测量，看看会有什么不同。此处的改动不会影响隧道。", "Replays what was measured under other settings and shows what would have been different. Nothing here touches the tunnel.";
    SPAN = "时间范围", "Time";
    SPAN_HOUR = "最近 1 小时", "The last hour";
    SPAN_DAY = "最近 24 小时", "The last 24 hours";
    SPAN_WEEK = "最近 7 天", "The last 7 days";
    OWNER = "链路持有节点", "Owner";
    OWNERS_ALL = "全部", "All of them";
    CHANGED = "改动的设置", "Changed settings";
    AS_IN_FORCE = "恢复为当前设置", "Back to those in force";
    SUGGEST = "推荐设置", "Suggest settings";
    SUGGESTING = "正在尝试约三十组设置…", "Trying about thirty settings …";
    SUGGESTED = "已填入推荐设置：平均多出 {excess}，每天切换 {switches} 次，其中约 {nothing} 次纯属测量噪声。", "The suggested settings are filled in: {excess} of excess on average, {switches} switches a day, and about {nothing} a day from noise alone.";
    SUGGESTED_NONE = "未找到更好的设置，当前填写的即可。", "Nothing better was found than what is filled in.";
    POLICIES = "对比其他策略", "Compare with policies";
    POLICIES_HINT = "其他系统的选择规则，用同一历史重放", "The rules of other systems, on the same history";
    RESULT = "结果", "Result";
    REPLAYING = "正在重放…", "Replaying …";
    LOADING = "正在读取历史…", "Fetching the history …";
    WAY = "选择方式", "Way of choosing";
    IN_FORCE = "当前设置", "Settings in force";
    WITH_CHANGES = "改动后的设置", "Changed settings";
    BEST_SHARE = "处于最优出口", "On the best exit";
    SWITCHES = "切换次数", "Switches";
    LATENCY = "平均延迟", "Mean latency";
    EXCESS = "平均多出", "Mean excess";
    EXCESS_HINT = "相对每一刻最优出口的得分", "of the score over the best exit of each moment";
    UNUSABLE = "不可用时间", "Time without a working exit";
    TIMELINE = "各时刻使用的出口", "The exit in use over time";
    TIMELINE_OF = "{way}：各时刻使用的出口", "{way}: the exit in use over time";
    DIFFERENCE = "改动后，隧道会切换 {switches} 次（当前设置 {before} 次），{share} 的时间处于最优出口（当前设置 {share_before}）。", "With these settings the tunnel would have switched {switches} times instead of {before}, and been on the best exit {share} of the time instead of {share_before}.";
    NO_DIFFERENCE = "结果不会有任何不同：每一刻选择的出口都一样。", "Nothing would have been different: at every moment the same exit.";
    FIRST = "首次不同在 {time}：会使用 {exit}，而不是 {before}。", "The first difference is at {time}: it would have used {exit} instead of {before}.";
    BETTER = "平均得分会好 {ms}。", "The score would have been better by {ms} on average.";
    WORSE = "平均得分会差 {ms}。", "The score would have been worse by {ms} on average.";
    JUDGED = "每 1% 丢包按 {penalty} 计，各行相同。", "A percent of loss counts as {penalty}, in all rows alike.";
    EMPTY = "这段时间没有可重放的测量。需要至少两个出口的测量轮次。", "Nothing was measured in this time that could be replayed: that takes rounds with two exits.";
    USE = "使用这些设置", "Use these settings";
    USE_TITLE = "使用这些设置", "Use these settings";
    USE_LEAD = "这些设置适用于整个面板的全部最优隧道：", "They apply to all best tunnels of this panel:";
    USE_CHANGE = "{name}：{before} → {after}", "{name}: {before} → {after}";
    USED = "设置已保存", "Settings saved";
}
