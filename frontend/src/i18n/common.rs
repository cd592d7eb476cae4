//! Words of the frame around all screens: navigation, login, states, buttons.

use super::texts;

texts! {
    PRODUCT = "ExitPilot", "ExitPilot";
    SKIP_TO_CONTENT = "跳到主要内容", "Skip to content";
    MAIN_NAVIGATION = "主导航", "Main navigation";
    MENU = "菜单", "Menu";
    NAV_OVERVIEW = "概览", "Overview";
    NAV_NODES = "节点", "Nodes";
    NAV_TUNNELS = "隧道", "Tunnels";
    NAV_FORWARDS = "转发", "Forwards";
    NAV_SETTINGS = "设置", "Settings";
    NAV_AUDIT = "操作日志", "Audit log";
    LOG_OUT = "退出登录", "Log out";
    LOGIN_TITLE = "登录", "Log in";
    LOGIN_LEAD = "为每个新连接选择最好的出口", "The best exit for every new connection";
    USERNAME = "用户名", "User name";
    PASSWORD = "密码", "Password";
    LOGIN_WRONG = "用户名或密码不正确。", "User name or password is wrong.";
    LOGIN_THROTTLED = "尝试次数过多，请在 {wait}后重试。", "Too many attempts. Try again in {wait}.";
    LOGIN_THROTTLED_SOME = "尝试次数过多，请稍后重试。", "Too many attempts. Try again later.";
    LOGIN_EMPTY = "请输入用户名和密码。", "Enter the user name and the password.";
    SESSION_ENDED = "登录已过期", "Your session has ended";
    SESSION_ENDED_HINT = "请重新登录，页面上已填写的内容会保留。", "Log in again; what you typed on the page stays.";
    VIEWER_HINT = "当前账号只能查看。", "This account can only read.";

    SAVE = "保存", "Save";
    CREATE = "创建", "Create";
    CANCEL = "取消", "Cancel";
    CLOSE = "关闭", "Close";
    EDIT = "编辑", "Edit";
    DELETE = "删除", "Delete";
    REMOVE = "移除", "Remove";
    MOVE_UP = "上移", "Move up";
    MOVE_DOWN = "下移", "Move down";
    COPY = "复制", "Copy";
    COPIED = "已复制", "Copied";
    COPY_FAILED = "无法复制，请手动选择文本。", "Could not copy; select the text by hand.";
    RETRY = "重试", "Try again";
    LOAD_MORE = "加载更多", "Load more";
    SEARCH = "搜索", "Search";
    DIAGNOSE = "诊断", "Diagnose";
    SHOW_ALL = "显示全部 {count} 条", "Show all {count}";
    ONLINE = "在线", "Online";
    OFFLINE = "离线", "Offline";
    NEVER = "从未", "Never";
    SAVED = "已保存", "Saved";
    DELETED = "已删除：{name}", "Deleted: {name}";

    LOADING = "正在载入…", "Loading…";
    NOT_FOUND = "找不到这个页面", "There is no such page";
    NOT_FOUND_HINT = "它可能已被删除，或者地址有误。", "It may have been deleted, or the address is wrong.";
    BACK_TO_START = "回到概览", "Back to the overview";
    STREAM_LOST = "与面板的连接已断开，正在重新连接…", "Offline, reconnecting…";
    STALE_DATA = "下面是最后一次取得的数据。", "What you see below is what was last received.";

    ERROR_UNREACHABLE = "面板没有响应，请检查网络后重试。", "The panel does not answer. Check the network and try again.";
    ERROR_FORBIDDEN = "当前账号没有权限执行此操作。", "This account may not do this.";
    ERROR_NOT_FOUND = "对象不存在，可能已被删除。", "It does not exist; it may have been deleted.";
    ERROR_IN_USE = "仍在使用中：{detail}", "Still in use: {detail}";
    ERROR_SESSION = "登录已过期，请重新登录后再试。", "Your session has ended. Log in and try again.";
    ERROR_THROTTLED = "请求过于频繁，请稍后再试。", "Too many requests. Try again later.";
    ERROR_UNAVAILABLE = "面板暂时不可用，请稍后再试。", "The panel is not available for the moment. Try again later.";
    ERROR_SERVER = "面板出错（{status}）：{detail}", "The panel failed ({status}): {detail}";
    ERROR_INVALID = "有 {count} 处填写有误，请修改后再保存。", "{count} fields need a change before this can be saved.";
    ERROR_STALE = "在您编辑期间，已有人修改过此对象。", "Somebody changed this while you were editing.";
    ERROR_STALE_HINT = "重新载入会用最新内容替换您填写的内容。", "Reloading replaces what you typed with what is stored now.";

    OVERVIEW_TITLE = "概览", "Overview";
    OVERVIEW_NODES = "在线节点", "Nodes online";
    OVERVIEW_TUNNELS = "隧道", "Tunnels";
    OVERVIEW_FORWARDS = "转发", "Forwards";
    OVERVIEW_ATTENTION = "需要处理", "Needs attention";
    OVERVIEW_ALL_WELL = "一切正常。", "All is well.";
    OVERVIEW_SWITCHES = "最近切换的出口", "Exits switched last";
    OVERVIEW_NO_SWITCHES = "还没有切换过出口。", "No exit has been switched yet.";
    OVERVIEW_OF = "共 {count} 个", "of {count}";
    OVERVIEW_START = "从这里开始", "Start here";
    OVERVIEW_START_NODES = "先添加入口和出口节点，并在服务器上安装代理程序。", "First add the entry and exit nodes and install the agent on the servers.";
    OVERVIEW_START_TUNNEL = "再创建一条隧道，把出口策略设为最优。", "Then create a tunnel and choose the strategy Best for its exits.";
    ATTENTION_NODE_OFFLINE = "节点 {name} 离线", "Node {name} is offline";
    ATTENTION_DEPLOY_FAILED = "隧道 {tunnel} 在 {node} 上部署失败：{reason}", "Tunnel {tunnel} could not be deployed on {node}: {reason}";
    ATTENTION_FORWARD_FAILED = "转发 {forward} 在 {node} 上部署失败：{reason}", "Forward {forward} could not be deployed on {node}: {reason}";
    ATTENTION_ALL_FAILED = "隧道 {tunnel}：所有出口都探测失败", "Tunnel {tunnel}: every exit failed its probes";
    ATTENTION_NODE_NEW = "节点 {name} 从未连接：请在服务器上安装代理程序", "Node {name} has never connected: install its agent";
    ATTENTION_NODE_OLD = "节点 {name} 的代理程序版本较旧（{version}，面板为 {panel}），请升级", "The agent of node {name} is older ({version}) than the panel ({panel}): upgrade it";
    ATTENTION_WAITING = "隧道 {tunnel} 还没有选出出口：等待探测", "Tunnel {tunnel} has no exit chosen yet: waiting for probes";
    ATTENTION_PAUSED = "探测已暂停，{count} 条最优隧道保持当前出口", "Probing is paused: tunnels with the strategy Best that keep their exit: {count}";
    ATTENTION_DISABLED = "已停用的隧道：{count} 条", "Tunnels that are disabled: {count}";
    ATTENTION_FORWARDS_PAUSED = "已暂停的转发：{count} 个", "Forwards that are paused: {count}";
    AND_MORE = "另有 {count} 条", "and {count} more";
    SINCE = "自 {time}", "since {time}";

    DIAGNOSE_TITLE = "诊断：{name}", "Diagnosis: {name}";
    DIAGNOSE_RUNNING = "已完成 {done} / {total}", "{done} of {total} done";
    DIAGNOSE_STARTING = "正在准备…", "Getting ready…";
    DIAGNOSE_DONE = "完成：{succeeded} 项成功，{failed} 项失败", "Done: {succeeded} succeeded, {failed} failed";
    DIAGNOSE_STOPPED = "诊断中断：{error}", "The diagnosis stopped: {error}";
    DIAGNOSE_LINK = "节点之间", "Between nodes";
    DIAGNOSE_TARGET = "到目标", "To the target";
    DIAGNOSE_CONNECTION = "完整连接", "Whole connection";
    DIAGNOSE_WAITING = "等待", "Waiting";
    DIAGNOSE_OK = "成功", "OK";
    DIAGNOSE_FAILED = "失败", "Failed";
    DIAGNOSE_AGAIN = "再次诊断", "Run again";
    LOSS_OF = "丢包 {loss}", "loss {loss}";
}
