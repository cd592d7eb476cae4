//! Words of the charts on a tunnel's monitor.

use super::texts;

texts! {
    TITLE = "历史", "History";
    EMPTY = "这段时间没有测量数据。", "Nothing was measured in this time.";
    SPANS = "时间范围", "Time span";
    SPAN_1M = "1 分钟", "1 min";
    SPAN_5M = "5 分钟", "5 min";
    SPAN_15M = "15 分钟", "15 min";
    SPAN_1H = "1 小时", "1 h";
    SPAN_6H = "6 小时", "6 h";
    SPAN_24H = "24 小时", "24 h";
    SPAN_7D = "7 天", "7 days";
    SPAN_30D = "30 天", "30 days";
    ZOOM = "缩放与移动", "Zoom and move";
    ZOOM_IN = "放大", "Zoom in";
    ZOOM_OUT = "缩小", "Zoom out";
    EARLIER = "更早", "Earlier";
    LATER = "更晚", "Later";
    RESET = "恢复", "Reset";
    EXPORT = "导出", "Export";
    TABLE = "表格", "Table";
    TABLE_CAPTION = "每格依次为延迟、丢包和得分，最新的在最前", "Latency, loss and score of each exit, newest first";
    TIME = "时间", "Time";
    EVENT = "切换", "Switches";
    LEGEND = "显示哪些出口", "Which exits are shown";
    LATENCY = "延迟", "Latency";
    LOSS = "丢包", "Loss";
    LATENCY_TITLE = "延迟（两段之和，ms）", "Latency, both legs together (ms)";
    LOSS_TITLE = "丢包（两段合计）", "Loss, both legs together";
    SCORE_TITLE = "得分（越低越好）", "Score (lower is better)";
    FAILED = "探测失败", "failed";
    READING = "延迟 {latency}，丢包 {loss}，得分 {score}", "latency {latency}, loss {loss}, score {score}";
    OF_EXIT = "{before}；{exit}：{values}", "{before}; {exit}: {values}";
    NAME = "{owner} 的延迟、丢包和得分", "Latency, loss and score as seen by {owner}";
    KEYS = "拖动可放大一段时间，触摸屏上可双指缩放。键盘：← → 逐点查看，Shift + ← → 移动，+ − 缩放，0 恢复。", "Drag to zoom into a stretch, or pinch with two fingers. Keys: ← → from point to point, Shift + ← → through time, + − zoom, 0 resets.";
}

/// What the spans on offer are called, from the shortest to the longest.
pub const SPANS_OFFERED: [super::Text; 8] =
    [SPAN_1M, SPAN_5M, SPAN_15M, SPAN_1H, SPAN_6H, SPAN_24H, SPAN_7D, SPAN_30D];
