//! Words of the audit log.

use super::{Text, forwards, nodes, settings, texts};

texts! {
    TITLE = "操作日志", "Audit log";
    EMPTY = "还没有记录。", "Nothing has been recorded yet.";
    NONE_FOUND = "没有符合条件的记录", "No entry matches";
    SEARCH_HINT = "按用户或对象搜索", "Search by user or object";
    WHEN = "时间", "When";
    WHO = "用户", "Who";
    WHAT = "操作", "What";
    OBJECT = "对象", "Object";
    DETAIL = "详情", "Detail";

    NODE_CREATE = "创建节点", "Node created";
    NODE_UPDATE = "修改节点", "Node changed";
    NODE_ROTATE_SECRET = "更换节点密钥", "Node secret rotated";
    NODE_DELETE = "删除节点", "Node deleted";
    TUNNEL_CREATE = "创建隧道", "Tunnel created";
    TUNNEL_UPDATE = "修改隧道", "Tunnel changed";
    TUNNEL_DELETE = "删除隧道", "Tunnel deleted";
    TUNNEL_REDEPLOY = "重新下发隧道", "Tunnel deployed again";
    FORWARD_CREATE = "创建转发", "Forward created";
    FORWARD_UPDATE = "修改转发", "Forward changed";
    FORWARD_DELETE = "删除转发", "Forward deleted";
    PIN_SET = "固定出口", "Exit pinned";
    PIN_REMOVE = "取消固定出口", "Exit unpinned";
    CHOICE_SET = "手动选择节点", "Node chosen by hand";
    CHOICE_CLEAR = "取消手动选择", "Choice by hand taken back";
    SETTINGS_UPDATE = "修改设置", "Settings changed";
    USER_CREATE = "添加用户", "User added";
    USER_UPDATE = "修改用户", "User changed";
    USER_DELETE = "删除用户", "User deleted";
    USER_RESET_PASSWORD = "重设用户密码", "Password of a user set anew";
    USER_CHANGE_PASSWORD = "修改自己的密码", "Own password changed";

    NAME = "名称", "Name";
    ENABLED = "启用", "Enabled";
}

/// What was done, by its code; `None` = a code that this page does not know.
pub fn action(code: &str) -> Option<Text> {
    Some(match code {
        "node.create" => NODE_CREATE,
        "node.update" => NODE_UPDATE,
        "node.rotate_secret" => NODE_ROTATE_SECRET,
        "node.delete" => NODE_DELETE,
        "tunnel.create" => TUNNEL_CREATE,
        "tunnel.update" => TUNNEL_UPDATE,
        "tunnel.delete" => TUNNEL_DELETE,
        "tunnel.redeploy" => TUNNEL_REDEPLOY,
        "forward.create" => FORWARD_CREATE,
        "forward.update" => FORWARD_UPDATE,
        "forward.delete" => FORWARD_DELETE,
        "pin.set" => PIN_SET,
        "pin.remove" => PIN_REMOVE,
        "choice.set" => CHOICE_SET,
        "choice.clear" => CHOICE_CLEAR,
        "settings.update" => SETTINGS_UPDATE,
        "user.create" => USER_CREATE,
        "user.update" => USER_UPDATE,
        "user.delete" => USER_DELETE,
        "user.reset_password" => USER_RESET_PASSWORD,
        "user.change_password" => USER_CHANGE_PASSWORD,
        _ => return None,
    })
}

/// The role that a new or deleted user has or had.
pub fn role(code: &str) -> Option<Text> {
    match code {
        "admin" => Some(settings::ROLE_ADMIN),
        "viewer" => Some(settings::ROLE_VIEWER),
        _ => None,
    }
}

/// What a field that was changed is called on its form; `None` = it stays as it is.
pub fn field(name: &str) -> Option<Text> {
    Some(match name {
        "name" => NAME,
        "enabled" => ENABLED,
        "serverIp" => nodes::SERVER_IP,
        "serverIpV4" => nodes::SERVER_IP_V4,
        "serverIpV6" => nodes::SERVER_IP_V6,
        "portRange" => nodes::PORT_RANGE,
        "interfaceName" => nodes::INTERFACE,
        "tcpListenAddr" => nodes::TCP_LISTEN,
        "udpListenAddr" => nodes::UDP_LISTEN,
        "listenPort" => forwards::LISTEN_PORT,
        "listenIp" => forwards::LISTEN_IP,
        "targets" => forwards::TARGETS,
        "strategy" => forwards::STRATEGY,
        "role" => settings::USER_ROLE,
        "monitorTunnelQualityEnabled" => settings::MONITORING,
        "probeTarget" => settings::PROBE_TARGET,
        "decisionRules" => settings::RULES,
        other => return settings::number(other).map(|(label, ..)| label),
    })
}
