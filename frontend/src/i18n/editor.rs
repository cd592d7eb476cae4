//! Words of the tunnel editor.

use super::texts;

texts! {
    NEW_TITLE = "新建隧道", "New tunnel";
    EDIT_TITLE = "编辑隧道", "Edit tunnel";
    NAME = "隧道名称", "Name";
    NAME_HINT = "2 到 50 个字符，不能重复", "2 to 50 characters, unique";
    TYPE = "隧道类型", "Type";
    TYPE_PORT_HINT = "入口节点直接连接目标", "The entry dials the target itself";
    TYPE_TUNNEL_HINT = "经过中间跳，从出口节点离开", "Through hops, out at an exit node";
    ENABLED = "启用隧道", "Enabled";
    ENTRY_TITLE = "入口节点", "Entry nodes";
    ENTRY_HINT = "用户连接到这里", "Users connect here";
    HOPS_TITLE = "转发链", "Hops";
    HOPS_HINT = "入口与出口之间的中间跳，可以没有", "Middle hops between entry and exit; there may be none";
    HOPS_NONE = "没有中间跳，入口直接连接出口。", "No middle hops: the entry connects straight to the exit.";
    HOP = "第 {number} 跳", "Hop {number}";
    ADD_HOP = "添加一跳", "Add a hop";
    REMOVE_HOP = "移除第 {number} 跳", "Remove hop {number}";
    EXIT_TITLE = "出口配置", "Exits";
    EXIT_ORDER_HINT = "顺序即主备的优先级，也是最优的初始顺序", "The order is the priority of Failover and the first order of Best";
    ADD_NODE = "添加节点", "Add a node";
    ADD_NODE_CHOOSE = "选择要添加的节点…", "Choose a node to add…";
    ALL_NODES_USED = "没有可添加的节点", "No node left to add";
    NO_NODES = "还没有节点，请先添加节点。", "There are no nodes yet; add some first.";
    MISSING_NODE = "节点 {id}（已不存在）", "Node {id} (gone)";
    REMOVE_NODE = "移除 {name}", "Remove {name}";
    NODE_UP = "上移 {name}", "Move {name} up";
    NODE_DOWN = "下移 {name}", "Move {name} down";
    DRAG_HINT = "拖动以调整顺序", "Drag to reorder";
    PROTOCOL = "协议", "Protocol";
    STRATEGY = "负载策略", "Strategy";
    MORE_STRATEGIES = "更多策略", "More strategies";
    STRATEGY_TEXT = "策略与选项", "Strategy with its options";
    STRATEGY_OPTIONS = "写作 名称(选项=值, …)，均可省略：{options}", "Written name(option=value, …); all may be left out: {options}";
    BEST_TWO_EXITS = "至少添加两个出口，才会从中选择最好的。", "Add two or more exits: with fewer nothing will be chosen.";
    CONNECT_IP = "连接IP", "Connect IP";
    CONNECT_IP_HINT = "留空使用节点地址", "Empty: the node's address";
    CONNECT_IP_ONE_NODE = "仅限单个节点", "Only with one node";
    PORT = "端口", "Port";
    PORT_AUTO = "自动", "automatic";
    ADVANCED = "高级选项", "Advanced";
    MAX_FAILS = "失败次数上限", "Failures before a node is left out";
    FAIL_TIMEOUT = "排除时长（毫秒）", "Left out for (ms)";
    IP_PREFERENCE = "IP 优先", "IP preference";
    IP_AUTO = "自动", "Automatic";
    IP_V4 = "IPv4 优先", "IPv4 first";
    IP_V6 = "IPv6 优先", "IPv6 first";
    AGENT_CANNOT = "{nodes} 的代理程序不支持", "not supported by the agent of {nodes}";
    KEEP_MINE = "保留我的修改", "Keep my version";
    KEEP_MINE_HINT = "下次保存会覆盖他人的修改。", "The next save overwrites the other change.";
    LOAD_THEIRS = "载入最新内容", "Load what is stored";
}
