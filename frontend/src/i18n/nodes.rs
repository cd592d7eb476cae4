//! Words of the nodes screen.

use super::texts;

texts! {
    TITLE = "节点", "Nodes";
    NEW = "新建节点", "New node";
    EDIT_TITLE = "编辑节点", "Edit node";
    EMPTY = "还没有节点", "No nodes yet";
    EMPTY_HINT = "节点是运行代理程序的服务器。添加一个节点，然后在服务器上执行安装命令。", "A node is a server that runs the agent. Add one, then run the install command on the server.";
    NONE_FOUND = "没有符合条件的节点", "No node matches";
    NAME = "节点名称", "Name";
    SERVER_IP = "服务器地址", "Address";
    SERVER_IP_HINT = "其他节点和用户访问它的 IP 或域名", "IP address or host name at which other nodes and users reach it";
    SERVER_IP_V4 = "IPv4 地址", "IPv4 address";
    SERVER_IP_V6 = "IPv6 地址", "IPv6 address";
    OPTIONAL_IP_HINT = "与服务器地址不同时填写", "Only where it differs from the address";
    PORT_RANGE = "端口范围", "Port range";
    PORT_RANGE_HINT = "转发和隧道使用的端口，防火墙须放行；例如 10000-60000 或 1000-2000,3000", "Ports for forwards and tunnels, which its firewall has to let in: such as 10000-60000 or 1000-2000,3000";
    INTERFACE = "出站网卡", "Interface to dial from";
    INTERFACE_HINT = "留空由系统选择", "Empty: the system chooses";
    TCP_LISTEN = "TCP 监听地址", "TCP listen address";
    UDP_LISTEN = "UDP 监听地址", "UDP listen address";
    ADVANCED = "高级选项", "Advanced";
    VERSION_UNKNOWN = "尚未连接", "never connected";
    VERSION_OLD = "版本较旧", "older than the panel";
    LAST_SEEN = "最近在线", "Last seen";
    CREATED = "节点已创建：{name}", "Node created: {name}";
    INSTALL = "安装", "Install";
    INSTALL_TITLE = "安装代理：{name}", "Install the agent: {name}";
    INSTALL_HINT = "在服务器上执行，从面板下载并安装为服务：", "Run this on the server: it fetches the agent from the panel and installs it as a service.";
    INSTALL_LOOPBACK = "下面的面板地址只在面板所在的服务器上有效，其他服务器无法连接。请为面板设置 EXITPILOT_PUBLIC_URL，或用其他服务器也能访问的地址打开此页面。", "The panel's address below works only on the panel's own server. For other servers set EXITPILOT_PUBLIC_URL for the panel, or open this page at an address that they can reach.";
    INSTALL_BY_HAND = "代理程序已在服务器上时，也可以直接运行：", "Or, where the agent is already, run it by hand:";
    INSTALL_WAITING = "代理程序尚未连接；执行命令后几秒内就会连接。", "The agent is not connected; it will be, seconds after the line has run.";
    INSTALL_DONE = "代理程序已连接", "The agent is connected";
    INSTALL_PLACEHOLDER_HINT = "请把 <secret> 换成节点密钥。密钥只在创建和更换时显示一次；遗失时请更换。", "Put the node's secret in place of <secret>. It is shown once, when created or rotated; rotate it if it is lost.";
    SECRET = "节点密钥", "Node secret";
    SECRET_ONCE = "命令中的密钥只显示这一次，关闭后无法再查看。", "The secret in these lines is shown this once. It cannot be looked up after closing.";
    ROTATE = "更换密钥", "Rotate secret";
    ROTATE_TITLE = "更换节点密钥？", "Rotate the secret?";
    ROTATE_HINT = "{name} 当前的密钥会立即失效，代理程序须用新密钥重新安装后才能连接。", "The present secret of {name} stops working at once; its agent has to be installed again with the new one.";
    DELETE_TITLE = "删除节点？", "Delete the node?";
    DELETE_LEAD = "将删除节点 {name}。", "This deletes the node {name}.";
    DELETE_TUNNELS = "以下隧道正在使用它，请先在隧道中移除：", "These tunnels use it; remove it there first:";
    DELETE_FORWARDS = "受影响的转发：", "Forwards concerned:";
    DELETE_UNUSED = "没有隧道使用这个节点。", "No tunnel uses this node.";
}
