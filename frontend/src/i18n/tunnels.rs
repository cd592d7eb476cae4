//! Words of the tunnels list.

use super::texts;

texts! {
    TITLE = "隧道", "Tunnels";
    NEW = "新建隧道", "New tunnel";
    EMPTY = "还没有隧道", "No tunnels yet";
    EMPTY_HINT = "隧道把入口节点、可选的中间跳和出口节点连成一条路径。", "A tunnel joins entry nodes, optional middle hops and exit nodes into a path.";
    NONE_FOUND = "没有符合条件的隧道", "No tunnel matches";
    SEARCH_HINT = "按名称或节点搜索", "Search by name or node";
    TYPE_PORT = "端口转发", "Port forwarding";
    TYPE_TUNNEL = "隧道转发", "Tunnel forwarding";
    CHIP_BEST = "最优出口: {name}", "Best exit: {name}";
    CHIP_MANY = "多个出口", "Several exits";
    CHIP_WAITING = "等待探测", "Waiting for probes";
    CHIP_PAUSED = "探测已暂停", "Probing paused";
    CHIP_PAUSED_AT = "探测已暂停: {name}", "Probing paused: {name}";
    TUNNEL_DISABLED = "已停用", "Disabled";
    DEPLOYED = "已部署 {count} 个节点", "Deployed (nodes: {count})";
    PENDING = "部署中 {count}", "{count} pending";
    FAILED = "部署失败 {count}", "{count} failed";
    STATE_APPLIED = "已生效", "Applied";
    STATE_PENDING = "等待中", "Pending";
    STATE_FAILED = "失败", "Failed";
    TARGET = "目标", "Target";
    MONITOR = "监控", "Monitor";
    REDEPLOY = "重新下发", "Redeploy";
    REDEPLOYED = "正在重新下发：{name}", "Being deployed again: {name}";
    DELETE_TITLE = "删除隧道？", "Delete the tunnel?";
    DELETE_LEAD = "将删除隧道 {name}，此操作无法撤销。", "This deletes the tunnel {name} and cannot be undone.";
    DELETE_FORWARDS = "以下转发会一并删除：", "These forwards go with it:";
    DELETE_NO_FORWARDS = "没有转发使用这条隧道。", "No forward uses this tunnel.";
    SAVED = "已保存隧道：{name}", "Tunnel saved: {name}";
}
