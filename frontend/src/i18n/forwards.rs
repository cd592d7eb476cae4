//! Words of the forwards screen.

use super::texts;

texts! {
    TITLE = "转发", "Forwards";
    NEW = "新建转发", "New forward";
    EDIT_TITLE = "编辑转发", "Edit forward";
    EMPTY = "还没有转发", "No forwards yet";
    EMPTY_HINT = "转发是隧道入口上的监听端口，以及它的目标地址。", "A forward is a listening port on the entry of a tunnel, and its target addresses.";
    EMPTY_NEEDS_TUNNEL = "请先创建一条隧道。", "Create a tunnel first.";
    NONE_FOUND = "没有符合条件的转发", "No forward matches";
    SEARCH_HINT = "按名称、隧道或地址搜索", "Search by name, tunnel or address";
    NAME = "转发名称", "Name";
    TUNNEL = "隧道", "Tunnel";
    CHOOSE_TUNNEL = "选择隧道…", "Choose a tunnel…";
    LISTEN_PORT = "监听端口", "Listening port";
    LISTEN_PORT_HINT = "0 表示自动选择", "0: chosen automatically";
    LISTEN_IP = "监听地址", "Listen address";
    LISTEN_IP_HINT = "留空使用节点的监听地址", "Empty: the node's listen address";
    TARGETS = "目标地址", "Targets";
    TARGETS_HINT = "每行一个 主机:端口，由隧道的最后一个节点连接", "One host:port per line, dialled by the tunnel's last node";
    STRATEGY = "目标策略", "Strategy of the targets";
    CONNECT_TO = "连接地址", "Connect to";
    PAUSE = "暂停", "Pause";
    RESUME = "恢复", "Resume";
    PAUSED = "已暂停", "Paused";
    DELETE_TITLE = "删除转发？", "Delete the forward?";
    DELETE_LEAD = "将删除转发 {name}，其端口 {port} 会被释放。", "This deletes the forward {name} and frees its port {port}.";
    SAVED = "已保存转发：{name}", "Forward saved: {name}";
    DID_PAUSE = "已暂停：{name}", "Paused: {name}";
    DID_RESUME = "已恢复：{name}", "Resumed: {name}";
}
