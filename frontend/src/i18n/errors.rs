//! What is wrong with an input, in words. The code decides; a code without words here is said in the panel's words.

use super::{Lang, Text, fill, texts};
use crate::api::ApiError;
use crate::format;
use crate::i18n::common;
use shared::field::FieldError;

texts! {
    NAME_LENGTH = "名称须为 {min} 到 {max} 个字符", "Give a name of {min} to {max} characters";
    NAME_TAKEN = "名称“{name}”已被使用", "The name “{name}” is taken";
    ENTRY_MISSING = "请至少选择一个入口节点", "Choose at least one entry node";
    EXIT_MISSING = "请至少选择一个出口节点", "Choose at least one exit node";
    HOP_EMPTY = "请选择节点，或移除这一跳", "Choose a node or remove this hop";
    NOT_FOR_PORT_TUNNEL = "端口转发没有中间跳和出口", "Port forwarding has neither hops nor exits";
    TOO_MANY = "最多 {max} 个", "At most {max}";
    NODE_UNKNOWN = "节点 {node} 不存在", "There is no node {node}";
    NODE_TWICE = "{node} 已在这条隧道中", "{node} is already in this tunnel";
    BEST_NEEDS_TWO_EXITS = "至少有两个出口才会进行选择", "There is a choice only with two or more exits";
    STRATEGY_UNKNOWN = "未知的策略“{strategy}”", "The strategy “{strategy}” is not known";
    STRATEGY_NOT_HERE = "策略“{strategy}”仅用于出口", "The strategy “{strategy}” is for exits only";
    STRATEGY_UNSUPPORTED = "{nodes} 的代理程序不支持策略“{strategy}”", "The agent of {nodes} cannot carry out the strategy “{strategy}”";
    STRATEGY_MEMBER = "没有编号为 {index} 的成员：第一个是 0，最后一个是 {last}", "There is no member {index}: the first is 0, the last {last}";
    STRATEGY_DEFAULT = "默认的“{default}”不在成员之中", "The default “{default}” is none of the members";
    STRATEGY_BY_HOST = "转发的客户端不说明目的地，请按客户端哈希", "Clients of a forward do not say where they want to go; hash by client";
    STRATEGY_SYNTAX = "第 {at} 个字符处应为{expected}，而不是“{found}”", "At character {at}: expected {expected}, found “{found}”";
    STRATEGY_SYNTAX_END = "第 {at} 个字符处应为{expected}，但文本已结束", "At character {at}: expected {expected}, but the text ends";
    EXPECTED_NAME = "策略名称", "a strategy's name";
    EXPECTED_VALUE = "一个值", "a value";
    EXPECTED_END = "文本结束", "the end of the text";
    EXPECTED_COMMA = "逗号或右括号", "a comma or a closing parenthesis";
    EXPECTED_QUOTE = "右引号", "the closing quote";
    EXPECTED_BYTES = "至多 {detail} 字节", "at most {detail} bytes";
    EXPECTED_DURATION = "时长，例如 500ms、3s、2m、1h（不超过 30 天）", "a duration such as 500ms, 3s, 2m or 1h, of at most 30 days";
    EXPECTED_MILLIS = "毫秒，例如 50 或 50ms", "milliseconds such as 50 or 50ms";
    EXPECTED_ABOVE_ZERO = "大于 0 的间隔", "an interval above 0";
    EXPECTED_IDLE = "不小于间隔 {detail} 的闲置时长", "an idle timeout not below the interval of {detail}";
    EXPECTED_URL = "以 http:// 或 https:// 开头的网址", "a URL that starts with http:// or https://";
    EXPECTED_NUMBER = "{detail} 之间的数字", "a number in {detail}";
    EXPECTED_MEMBER = "成员编号（0 为第一个）", "the member's number (0 = the first)";
    EXPECTED_WORDS = "以下之一：{detail}", "one of {detail}";
    EXPECTED_OPTION = "“{detail}”的选项，且只写一次", "an option that “{detail}” has, once";
    EXPECTED_NO_VALUE = "没有更多的值（“{detail}”的选项写作 名称=值）", "no further value (options of “{detail}” are written name=value)";
    TIMEOUT_RAISED = "低于 2 秒的超时会提高到 2 秒", "A timeout below 2 seconds is raised to 2 seconds";
    FAIL_FILTER_UNUSED = "该策略自行判断成员是否可用，不使用失败过滤", "This strategy decides by itself when a member is left out; the fail filter is not used";
    PROTOCOL_UNKNOWN = "未知的协议“{protocol}”", "The protocol “{protocol}” is not known";
    OUT_OF_RANGE = "须在 {min} 到 {max} 之间", "Must be between {min} and {max}";
    CONNECT_IP_NEEDS_ONE_NODE = "仅当该组只有一个节点时可以填写连接IP", "A connect IP is possible only with one node in the group";
    IP_INVALID = "请填写 IP 地址，或留空", "Write an IP address or leave it empty";
    IP_V4_INVALID = "请填写 IPv4 地址，或留空", "Write an IPv4 address or leave it empty";
    IP_V6_INVALID = "请填写 IPv6 地址，或留空", "Write an IPv6 address or leave it empty";
    PORT_OUTSIDE_RANGE = "{node} 可用的端口为 {range}", "{node} may use the ports {range}";
    USER_TUNNEL = "隧道“{name}”", "tunnel “{name}”";
    USER_FORWARD = "转发“{name}”", "forward “{name}”";
    PORT_TAKEN = "{node} 的端口 {port} 已被 {user} 使用", "Port {port} of {node} is used by {user}";
    CAPABILITY_MISSING = "{node} 的代理程序不支持（{capability}）", "The agent of {node} cannot do this ({capability})";
    TUNNEL_UNKNOWN = "隧道 {tunnel} 不存在", "There is no tunnel {tunnel}";
    TUNNEL_MISSING = "请选择隧道", "Choose a tunnel";
    TARGET_MISSING = "请至少填写一个目标，格式为 主机:端口", "Give at least one target, host:port";
    ADDRESS_MALFORMED = "只写 主机:端口，不带协议、路径和空格", "Write host:port only, without scheme, path or spaces";
    HOST_MISSING = "请填写 IP 地址或域名", "Give an IP address or a host name";
    HOST_INVALID = "主机既不是域名也不是 IP 地址", "The host is neither a name nor an address";
    PORT_INVALID = "端口须为 1 到 65535 的数字", "The port must be a number from 1 to 65535";
    PORT_RANGE_INVALID = "请填写端口或端口范围，例如 10000-60000", "Write ports or ranges such as 10000-60000, the lower first";
    LISTEN_ADDR_INVALID = "请填写监听的 IP 地址，[::] 表示全部", "Write the IP address to listen on, [::] for all";
    INTERFACE_INVALID = "请填写网卡名称（最多 15 个字符），或留空", "Write the name of a network interface (at most 15 characters) or leave it empty";
    NOT_AVAILABLE = "此版本不可用", "Not available in this version";
    NUMBER_INVALID = "请填写数字", "Write a number";
    WHOLE_NUMBER = "请填写整数", "Write a whole number";
    REASON_LENGTH = "原因须为 1 到 {max} 个字符", "Give a reason of 1 to {max} characters";
    TAKEN = "已经存在", "It exists already";
    NOT_AN_EXIT = "节点 {node} 不是这条隧道的出口", "Node {node} is no exit of this tunnel";
    NOT_AN_OWNER = "节点 {node} 不选择这条隧道的出口", "Node {node} does not choose an exit of this tunnel";
    NOTHING_TO_PIN = "只有使用最优策略且有两个以上出口的隧道可以固定出口", "Only a tunnel with the strategy Best and two or more exits can be pinned";
    NOTHING_TO_CHOOSE = "节点 {node} 不在手动选择的组中", "Node {node} is in no group that leaves the choice to a person";
    IN_THE_PAST = "请选择将来的时间，或留空", "Choose a time to come or leave it out";
    PORTS_IN_USE = "此范围之外的端口正在使用：{ports}", "Ports outside this range are in use: {ports}";
    TOO_LONG = "最多 {max} 个字符", "At most {max} characters";
    CONTROL_CHARACTER = "请删除控制字符", "Remove the control characters";
    EMPTY = "请填写", "This is needed";
    NO_FREE_PORT = "{node} 的端口范围内没有空闲端口", "{node} has no free port left in its range";
    PORT_OF_FORWARD = "{node} 无法监听转发 {forward} 的端口 {port}", "{node} cannot listen on port {port} of the forward {forward}";
    PASSWORD_LENGTH = "密码至少 {min} 个字符", "The password needs at least {min} characters";
    PASSWORD_WRONG = "当前密码不正确", "The present password is wrong";
    PASSWORDS_DIFFER = "两次输入的密码不一致", "The two passwords differ";
}

/// The words for a code. Codes are those of `shared`, of the panel, and a few of this page's own forms.
pub fn text(code: &str) -> Option<Text> {
    Some(match code {
        "name_length" => NAME_LENGTH,
        "name_taken" => NAME_TAKEN,
        "entry_missing" => ENTRY_MISSING,
        "exit_missing" => EXIT_MISSING,
        "hop_empty" => HOP_EMPTY,
        "not_for_port_tunnel" => NOT_FOR_PORT_TUNNEL,
        "too_many" => TOO_MANY,
        "node_unknown" => NODE_UNKNOWN,
        "node_twice" => NODE_TWICE,
        "best_needs_two_exits" => BEST_NEEDS_TWO_EXITS,
        "strategy_unknown" => STRATEGY_UNKNOWN,
        "strategy_not_here" => STRATEGY_NOT_HERE,
        "strategy_unsupported" => STRATEGY_UNSUPPORTED,
        "strategy_member" => STRATEGY_MEMBER,
        "strategy_default" => STRATEGY_DEFAULT,
        "strategy_by_host" => STRATEGY_BY_HOST,
        "strategy_syntax" => STRATEGY_SYNTAX,
        "timeout_raised" => TIMEOUT_RAISED,
        "fail_filter_unused" => FAIL_FILTER_UNUSED,
        "protocol_unknown" => PROTOCOL_UNKNOWN,
        "out_of_range" => OUT_OF_RANGE,
        "connect_ip_needs_one_node" => CONNECT_IP_NEEDS_ONE_NODE,
        "ip_invalid" => IP_INVALID,
        "ip_v4_invalid" => IP_V4_INVALID,
        "ip_v6_invalid" => IP_V6_INVALID,
        "port_outside_range" => PORT_OUTSIDE_RANGE,
        "port_taken" => PORT_TAKEN,
        "capability_missing" => CAPABILITY_MISSING,
        "tunnel_unknown" => TUNNEL_UNKNOWN,
        "tunnel_missing" => TUNNEL_MISSING,
        "target_missing" => TARGET_MISSING,
        "address_malformed" => ADDRESS_MALFORMED,
        "host_missing" => HOST_MISSING,
        "host_invalid" => HOST_INVALID,
        "port_invalid" => PORT_INVALID,
        "port_range_invalid" => PORT_RANGE_INVALID,
        "listen_addr_invalid" => LISTEN_ADDR_INVALID,
        "interface_invalid" => INTERFACE_INVALID,
        "not_available" => NOT_AVAILABLE,
        "number_invalid" => NUMBER_INVALID,
        "whole_number" => WHOLE_NUMBER,
        "reason_length" => REASON_LENGTH,
        "taken" => TAKEN,
        "not_an_exit" => NOT_AN_EXIT,
        "not_an_owner" => NOT_AN_OWNER,
        "nothing_to_pin" => NOTHING_TO_PIN,
        "nothing_to_choose" => NOTHING_TO_CHOOSE,
        "in_the_past" => IN_THE_PAST,
        "ports_in_use" => PORTS_IN_USE,
        "too_long" => TOO_LONG,
        "control_character" => CONTROL_CHARACTER,
        "empty" => EMPTY,
        "no_free_port" => NO_FREE_PORT,
        "password_length" => PASSWORD_LENGTH,
        "wrong_password" => PASSWORD_WRONG,
        "passwords_differ" => PASSWORDS_DIFFER,
        _ => return None,
    })
}

/// A field error in words: translated where all values that the words need are there, else as the panel said it.
pub fn field(error: &FieldError, lang: Lang) -> String {
    let of_forward = matches!(error.code.as_str(), "port_taken" | "port_outside_range")
        && error.params.contains_key("forward");
    let text = if of_forward {
        Some(PORT_OF_FORWARD)
    } else if error.code == "strategy_syntax" && error.params.get("found").is_some_and(String::is_empty) {
        Some(STRATEGY_SYNTAX_END)
    } else {
        text(&error.code)
    };
    let Some(text) = text else { return error.message.clone() };
    let values = error.params.iter().map(|(name, value)| {
        let said = match name.as_str() {
            "user" => port_user(value, lang),
            "expected" => expected(error, value, lang),
            _ => value.clone(),
        };
        (name.as_str(), said)
    });
    let values: Vec<(&str, String)> = values.collect();
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let said = fill(text.say(lang), &values);
    if said.contains('{') { error.message.clone() } else { said }
}

/// What would have been right in the text of a strategy; the code of `shared::policy::Expected`.
fn expected(error: &FieldError, code: &str, lang: Lang) -> String {
    let words = match code {
        "name" => EXPECTED_NAME,
        "value" => EXPECTED_VALUE,
        "end" => EXPECTED_END,
        "comma" => EXPECTED_COMMA,
        "quote" => EXPECTED_QUOTE,
        "bytes" => EXPECTED_BYTES,
        "duration" => EXPECTED_DURATION,
        "millis" => EXPECTED_MILLIS,
        "above_zero" => EXPECTED_ABOVE_ZERO,
        "idle_timeout" => EXPECTED_IDLE,
        "url" => EXPECTED_URL,
        "number" => EXPECTED_NUMBER,
        "member" => EXPECTED_MEMBER,
        "words" => EXPECTED_WORDS,
        "option" => EXPECTED_OPTION,
        "no_value" => EXPECTED_NO_VALUE,
        _ => return code.to_owned(),
    };
    words.with(lang, &[("detail", error.params.get("detail").map_or("", String::as_str))])
}

/// Who uses a port: the panel says what it is, then its name.
fn port_user(user: &str, lang: Lang) -> String {
    let kinds = [("tunnel ", USER_TUNNEL), ("forward ", USER_FORWARD)];
    let known = kinds.into_iter().find_map(|(kind, words)| Some((words, user.strip_prefix(kind)?)));
    known.map_or_else(|| user.to_owned(), |(words, name)| words.with(lang, &[("name", name)]))
}

/// A failed request in words.
pub fn api(error: &ApiError, lang: Lang) -> String {
    let detail =
        error.problem.as_ref().map(|problem| problem.detail.as_str()).filter(|text| !text.is_empty());
    let known = match error.status {
        0 => common::ERROR_UNREACHABLE,
        401 => common::ERROR_SESSION,
        403 => common::ERROR_FORBIDDEN,
        404 => common::ERROR_NOT_FOUND,
        409 if error.is_stale() => common::ERROR_STALE,
        409 => return common::ERROR_IN_USE.with(lang, &[("detail", detail.unwrap_or("–"))]),
        422 if !error.fields().is_empty() => {
            let fields: Vec<String> = error.fields().iter().map(|error| field(error, lang)).collect();
            return fields.join("; ");
        }
        429 => {
            return match error.retry_after_s {
                Some(seconds) => {
                    let wait = format::duration(i64::from(seconds) * 1000, lang);
                    common::LOGIN_THROTTLED.with(lang, &[("wait", &wait)])
                }
                None => common::ERROR_THROTTLED.say(lang).to_owned(),
            };
        }
        503 => common::ERROR_UNAVAILABLE,
        status => {
            let status = status.to_string();
            return common::ERROR_SERVER
                .with(lang, &[("status", &status), ("detail", detail.unwrap_or("–"))]);
        }
    };
    known.say(lang).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::address::AddressError;
    use shared::api::{ForwardInput, NodeInput, TunnelInput, validate_node};
    use shared::best_exit::Settings;
    use shared::ids::{NodeId, TunnelId};
    use shared::topology::{KnownNode, World, validate_forward, validate_tunnel};
    use std::collections::BTreeSet;

    fn check(errors: impl IntoIterator<Item = FieldError>) -> Vec<String> {
        let mut codes = Vec::new();
        for error in errors {
            assert!(text(&error.code).is_some(), "{} has no words", error.code);
            for lang in Lang::ALL {
                let said = field(&error, lang);
                assert!(!said.contains('{'), "{said}");
                // Falling back to the panel's words would mean that a value is missing.
                assert!(lang == Lang::En || said != error.message, "{} is not translated", error.code);
            }
            codes.push(error.code);
        }
        codes
    }

    fn world() -> World {
        let node = |name: &str, capabilities: &[&str]| KnownNode {
            name: name.into(),
            port_range: "10000-20000".into(),
            capabilities: capabilities.iter().map(ToString::to_string).collect(),
            seen: false,
            taken_ports: [(10_001, "the forward web".to_owned())].into(),
        };
        World {
            nodes: [(NodeId(1), node("a", &[])), (NodeId(2), node("b", &["protocol:tcp"]))].into(),
            tunnel_names: ["taken".to_owned()].into(),
        }
    }

    #[test]
    fn every_finding_about_a_tunnel_has_words() {
        let inputs = [
            r#"{"name":"x","entry":{"nodes":[]},"hops":[{"nodes":[]}],"exit":{"nodes":[]}}"#,
            r#"{"name":"taken","entry":{"nodes":[{"nodeId":1},{"nodeId":1},{"nodeId":9}]},
                "hops":[{"strategy":"best","nodes":[{"nodeId":2}]}],
                "exit":{"strategy":"odd","protocol":"odd","maxFails":0,"failTimeoutMs":0,"nodes":[{"nodeId":2}]}}"#,
            r#"{"name":"ok","type":"port","entry":{"nodes":[{"nodeId":1}]},"hops":[{"nodes":[]}]}"#,
            r#"{"name":"ok","entry":{"nodes":[{"nodeId":1}]},
                "exit":{"strategy":"best","nodes":[{"nodeId":2,"port":1,"connectIp":"x"}]}}"#,
            r#"{"name":"ok","entry":{"nodes":[]},"exit":{"protocol":"tcp",
                "nodes":[{"nodeId":1,"port":10001,"connectIp":"192.0.2.1"},{"nodeId":2}]}}"#,
        ];
        let mut codes = Vec::new();
        for input in inputs {
            let input: TunnelInput = serde_json::from_str(input).unwrap();
            let findings = validate_tunnel(&input, &world());
            codes.extend(check(findings.errors.into_iter().chain(findings.warnings)));
        }
        let mut many: TunnelInput = serde_json::from_str(inputs[0]).unwrap();
        many.hops = vec![Default::default(); 20];
        codes.extend(check(validate_tunnel(&many, &world()).errors));
        for code in [
            "name_length",
            "name_taken",
            "entry_missing",
            "exit_missing",
            "hop_empty",
            "not_for_port_tunnel",
            "too_many",
            "node_unknown",
            "node_twice",
            "best_needs_two_exits",
            "strategy_unknown",
            "strategy_not_here",
            "protocol_unknown",
            "out_of_range",
            "connect_ip_needs_one_node",
            "ip_invalid",
            "port_outside_range",
            "port_taken",
            "capability_missing",
        ] {
            assert!(codes.iter().any(|found| found == code), "{code} was not provoked");
        }
    }

    #[test]
    fn every_wrong_strategy_has_words() {
        let mut said = BTreeSet::new();
        for (strategy, code) in [
            ("", "name"),
            ("fixed(", "value"),
            ("fixed(0) x", "end"),
            ("fixed(0", "comma"),
            ("selector(default=\"x", "quote"),
            (&"x".repeat(2001), "bytes"),
            ("urltest(interval=x)", "duration"),
            ("urltest(tolerance=x)", "millis"),
            ("urltest(interval=0s)", "above_zero"),
            ("urltest(idle_timeout=1s)", "idle_timeout"),
            ("urltest(url=x)", "url"),
            ("urltest(fall=0)", "number"),
            ("fixed", "member"),
            ("selector(interrupt=x)", "words"),
            ("selector(x=1)", "option"),
            ("fixed(0, 1)", "no_value"),
        ] {
            let input = format!(
                r#"{{"name":"ok","entry":{{"nodes":[{{"nodeId":1}}]}},
                    "exit":{{"protocol":"tcp","strategy":{},"nodes":[{{"nodeId":2}}]}}}}"#,
                serde_json::to_string(strategy).unwrap()
            );
            let input: TunnelInput = serde_json::from_str(&input).unwrap();
            let errors = validate_tunnel(&input, &world()).errors;
            assert_eq!(errors[0].params["expected"], code, "{strategy}");
            for lang in Lang::ALL {
                let text = field(&errors[0], lang);
                assert!(!text.contains(&format!("应为{code}，")), "{text}");
                assert!(!text.contains(&format!("expected {code},")), "{text}");
                said.insert(text);
            }
            check(errors);
        }
        assert_eq!(said.len(), 32);
        for (strategy, code) in [
            ("fixed(7)", "strategy_member"),
            ("selector(default=x)", "strategy_default"),
            ("hash(host)", "strategy_by_host"),
            ("min", "strategy_unsupported"),
        ] {
            let input = format!(
                r#"{{"name":"ok","entry":{{"nodes":[{{"nodeId":1}}]}},
                    "exit":{{"protocol":"tcp","strategy":"{strategy}","nodes":[{{"nodeId":2}}]}}}}"#
            );
            let input: TunnelInput = serde_json::from_str(&input).unwrap();
            let mut world = world();
            world.nodes.get_mut(&NodeId(1)).unwrap().capabilities =
                ["fifo", "fixed", "selector", "hash"].map(|name| format!("strategy:{name}")).into();
            assert_eq!(check(validate_tunnel(&input, &world).errors), [code]);
        }
        let input = r#"{"name":"ok","entry":{"nodes":[{"nodeId":1}]},"exit":{"protocol":"tcp","maxFails":9,
            "strategy":"fixed_fallback(0,1s)","nodes":[{"nodeId":2}]}}"#;
        let input: TunnelInput = serde_json::from_str(input).unwrap();
        let warnings = check(validate_tunnel(&input, &world()).warnings);
        assert_eq!(warnings, ["timeout_raised", "fail_filter_unused"]);
    }

    #[test]
    fn every_finding_about_forwards_nodes_and_settings_has_words() {
        let forward: ForwardInput =
            serde_json::from_str(r#"{"tunnelId":1,"name":"","listenIp":"x","targets":[],"strategy":"best"}"#)
                .unwrap();
        check(validate_forward(&forward, None).errors);
        let bad =
            ForwardInput { tunnel_id: TunnelId(1), targets: vec!["a/b".into(), ":1".into()], ..forward };
        check(validate_forward(&bad, Some(&[])).errors);
        let node = NodeInput {
            server_ip_v4: "x".into(),
            server_ip_v6: "x".into(),
            port_range: "x".into(),
            tcp_listen_addr: "x".into(),
            interface_name: "a b".into(),
            ..NodeInput::default()
        };
        assert_eq!(check(validate_node(&node)).len(), 7);
        let settings = Settings { confirmations: 0, probe_target: "x".into(), ..Settings::default() };
        assert_eq!(check(settings.validate()).len(), 2);
        for error in [
            AddressError::NotHostPort,
            AddressError::HostMissing,
            AddressError::HostInvalid,
            AddressError::PortInvalid,
        ] {
            assert!(text(error.code()).is_some());
        }
    }

    #[test]
    fn an_unknown_code_is_said_in_the_panels_words() {
        let error = FieldError::new("name", "from_the_future", "do this");
        assert_eq!(field(&error, Lang::Zh), "do this");
        let error = FieldError::new("entry.nodes[0].nodeId", "port_taken", "it cannot listen there");
        let error = error.with("node", "a").with("port", 80).with("forward", "web");
        assert_eq!(field(&error, Lang::En), "a cannot listen on port 80 of the forward web");
        let error = FieldError::new("port", "port_taken", "").with("node", "a").with("port", 80);
        assert_eq!(
            field(&error.clone().with("user", "tunnel first"), Lang::Zh),
            "a 的端口 80 已被 隧道“first” 使用"
        );
        assert_eq!(field(&error.with("user", "sshd"), Lang::Zh), "a 的端口 80 已被 sshd 使用");
        // Words that need a value the panel did not send.
        let error = FieldError::new("name", "name_taken", "it is taken");
        assert_eq!(field(&error, Lang::Zh), "it is taken");
    }
}
