//! Names of the page's elements (`data-testid`), shared with the browser tests: renamed once, both follow.
//!
//! Where a name ends in a colon, something that tells the elements apart comes behind it: see [`with`].

/// The name of one of several: `with(TUNNEL_ROW, 42)` is `tunnel-row:42`.
pub fn with(name: &str, which: impl std::fmt::Display) -> String {
    format!("{name}{which}")
}

/// The name of a part of one of several: `of(CANDIDATE_ROW, 11, 31)` is `candidate-row:11:31`.
pub fn of(name: &str, which: impl std::fmt::Display, part: impl std::fmt::Display) -> String {
    format!("{name}{which}:{part}")
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*

        /// All names.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

ids! {
    /// Input of the login form.
    LOGIN_USERNAME = "login-username";
    /// Input of the login form.
    LOGIN_PASSWORD = "login-password";
    /// Button of the login form.
    LOGIN_SUBMIT = "login-submit";
    /// What went wrong with the login.
    LOGIN_ERROR = "login-error";
    /// Dialog that asks for a new login while the page stays as it is.
    SESSION_DIALOG = "session-dialog";
    /// Button that ends the session.
    LOGOUT = "logout";
    /// Frame around all screens but the login.
    SHELL = "shell";
    /// Heading of a screen.
    PAGE_TITLE = "page-title";
    /// Button that opens the navigation on a phone.
    NAV_TOGGLE = "nav-toggle";
    /// Link of the navigation, by its path without the slash (`nav:tunnels`; the overview is `nav:overview`).
    NAV = "nav:";
    /// Banner: the event stream is being reconnected.
    OFFLINE_BANNER = "offline-banner";
    /// A short message that goes away.
    TOAST = "toast";
    /// A failed fetch in place of the data.
    LOAD_ERROR = "load-error";
    /// Alert: the code of a screen is not to be had.
    SCREEN_GONE = "screen-gone";
    /// Button in it.
    SCREEN_RELOAD = "screen-reload";
    /// A list without entries.
    EMPTY = "empty";
    /// Button of a question that does what was asked.
    CONFIRM = "confirm";
    /// Button that closes a dialog without doing anything.
    CANCEL = "cancel";
    /// Names of what would be lost.
    DELETE_PREVIEW = "delete-preview";
    /// Message at a field, by the field's path (`field-error:exit.nodes`).
    FIELD_ERROR = "field-error:";
    /// Message about a form as a whole.
    FORM_ERROR = "form-error";

    /// Button.
    NODE_NEW = "node-new";
    /// Row, by node id.
    NODE_ROW = "node-row:";
    /// Online state in a row, by node id.
    NODE_STATE = "node-state:";
    /// Button in a row, by node id.
    NODE_EDIT = "node-edit:";
    /// Button in a row, by node id.
    NODE_DELETE = "node-delete:";
    /// Button in a row, by node id.
    NODE_ROTATE = "node-rotate:";
    /// Button in a row, by node id.
    NODE_INSTALL = "node-install:";
    /// Button of the node form.
    NODE_SAVE = "node-save";
    /// Input of the node form, by JSON name (`node-field:serverIp`).
    NODE_FIELD = "node-field:";
    /// The secret, shown once.
    NODE_SECRET = "node-secret";
    /// The command line to install the agent.
    INSTALL_SCRIPT = "install-script";
    /// The command line to run an agent that is there.
    INSTALL_COMMAND = "install-command";

    /// Button.
    TUNNEL_NEW = "tunnel-new";
    /// Input that filters the list.
    TUNNEL_SEARCH = "tunnel-search";
    /// Row, by tunnel id.
    TUNNEL_ROW = "tunnel-row:";
    /// Best-exit chip in a row, by tunnel id.
    TUNNEL_CHIP = "tunnel-chip:";
    /// Deployment state in a row, by tunnel id.
    TUNNEL_STATE = "tunnel-state:";
    /// Link to the editor, by tunnel id.
    TUNNEL_EDIT = "tunnel-edit:";
    /// Link to the monitor, by tunnel id.
    TUNNEL_MONITOR = "tunnel-monitor:";
    /// Button, by tunnel id.
    TUNNEL_DELETE = "tunnel-delete:";
    /// Button, by tunnel id.
    TUNNEL_DIAGNOSE = "tunnel-diagnose:";
    /// Button, by tunnel id.
    TUNNEL_REDEPLOY = "tunnel-redeploy:";

    /// The tunnel editor's form.
    EDITOR = "editor";
    /// Input.
    EDITOR_NAME = "editor-name";
    /// Radio button, by type (`editor-type:port`).
    EDITOR_TYPE = "editor-type:";
    /// Checkbox.
    EDITOR_ENABLED = "editor-enabled";
    /// Select.
    EDITOR_IP_PREFERENCE = "editor-ip-preference";
    /// Select that adds a node, by group (`entry`, `exit`, `hop-0`).
    EDITOR_ADD_NODE = "editor-add-node:";
    /// Row of a node, by group and node id (`editor-node:exit:31`).
    EDITOR_NODE = "editor-node:";
    /// Button in such a row.
    EDITOR_NODE_UP = "editor-node-up:";
    /// Button in such a row.
    EDITOR_NODE_DOWN = "editor-node-down:";
    /// Button in such a row.
    EDITOR_NODE_REMOVE = "editor-node-remove:";
    /// Input in such a row.
    EDITOR_NODE_PORT = "editor-node-port:";
    /// Input in such a row.
    EDITOR_NODE_CONNECT_IP = "editor-node-connect-ip:";
    /// Select, by group.
    EDITOR_PROTOCOL = "editor-protocol:";
    /// Radio group, by group.
    EDITOR_STRATEGY = "editor-strategy:";
    /// Radio button, by group and strategy (`editor-strategy-option:exit:best`).
    EDITOR_STRATEGY_OPTION = "editor-strategy-option:";
    /// Input with the text of a strategy that has options, by group.
    EDITOR_STRATEGY_TEXT = "editor-strategy-text:";
    /// What opens the strategies under "more", by group.
    EDITOR_STRATEGY_MORE = "editor-strategy-more:";
    /// What opens a group's advanced fields, by group.
    EDITOR_ADVANCED = "editor-advanced:";
    /// Input, by group.
    EDITOR_MAX_FAILS = "editor-max-fails:";
    /// Input, by group.
    EDITOR_FAIL_TIMEOUT = "editor-fail-timeout:";
    /// Button.
    EDITOR_ADD_HOP = "editor-add-hop";
    /// Button, by index.
    EDITOR_REMOVE_HOP = "editor-remove-hop:";
    /// Button, by index.
    EDITOR_HOP_UP = "editor-hop-up:";
    /// Button, by index.
    EDITOR_HOP_DOWN = "editor-hop-down:";
    /// Hint: with fewer than two exits nothing is chosen.
    EDITOR_BEST_HINT = "editor-best-hint";
    /// Button.
    EDITOR_SAVE = "editor-save";
    /// Button back to the list.
    EDITOR_CANCEL = "editor-cancel";
    /// Banner: somebody else changed the tunnel.
    EDITOR_STALE = "editor-stale";
    /// Button in that banner.
    EDITOR_LOAD_THEIRS = "editor-load-theirs";
    /// Button in that banner.
    EDITOR_KEEP_MINE = "editor-keep-mine";

    /// State of the tunnel's decisions as a whole.
    MONITOR_STATUS = "monitor-status";
    /// Card of an owner, by node id.
    OWNER_CARD = "owner-card:";
    /// The reason in words, by owner. `data-code` has its code.
    OWNER_REASON = "owner-reason:";
    /// The applied exit's name, by owner. `data-exit` has its id.
    OWNER_APPLIED = "owner-applied:";
    /// Pending exit, by owner.
    OWNER_PENDING = "owner-pending:";
    /// Cooldown, by owner.
    OWNER_COOLDOWN = "owner-cooldown:";
    /// Last switch, by owner.
    OWNER_LAST_SWITCH = "owner-last-switch:";
    /// Row of a candidate, by owner and exit. `data-rank` counts from 1, `data-applied` is `true` or `false`.
    CANDIDATE_ROW = "candidate-row:";
    /// A candidate's score, by owner and exit.
    CANDIDATE_SCORE = "candidate-score:";
    /// Mark of the applied exit, by owner.
    APPLIED_MARK = "applied-mark:";
    /// Card of a group whose choice is made ahead of connections, by owner's node id.
    GROUP_CARD = "group-card:";
    /// Who is in use and why, by owner's node id and network (`group-in-use:11:tcp4`).
    GROUP_IN_USE = "group-in-use:";
    /// What a person has chosen, by owner's node id.
    GROUP_CHOICE = "group-choice:";
    /// Button that takes it back, by owner's node id.
    GROUP_CLEAR = "group-clear:";
    /// Row of a member, by owner's and member's node id.
    GROUP_MEMBER = "group-member:";
    /// Button in a row that chooses the member, by owner's and member's node id.
    GROUP_USE = "group-use:";
    /// Button.
    PIN_OPEN = "pin-open";
    /// Select of the pin dialog.
    PIN_EXIT = "pin-exit";
    /// Select of the pin dialog.
    PIN_OWNER = "pin-owner";
    /// Select of the pin dialog.
    PIN_UNTIL = "pin-until";
    /// Input of the pin dialog.
    PIN_REASON = "pin-reason";
    /// Button of the pin dialog.
    PIN_SAVE = "pin-save";
    /// Button at a pin, by owner.
    UNPIN = "unpin:";
    /// Drawing of what an owner saw, by owner.
    CHART = "chart:";
    /// An exit's line, by owner, exit and chart from the top (`chart-line:11:31:0`).
    CHART_LINE = "chart-line:";
    /// Mark of a switch, a refused one or a pin, by owner and entry of the log. `data-code` has the reason's code.
    CHART_EVENT = "chart-event:";
    /// Box beside the pointer, by owner. `data-at` has the step's start, `data-step` its length.
    CHART_TIP = "chart-tip:";
    /// Row of that box, by owner and exit.
    CHART_TIP_ROW = "chart-tip-row:";
    /// The same as a table, by owner.
    CHART_TABLE = "chart-table:";
    /// Button with a span, by its minutes.
    CHART_SPAN = "chart-span:";
    /// Button: `earlier`, `later`, `in`, `out`, `reset` or `table`.
    CHART_TOOL = "chart-tool:";
    /// Link to what is shown as a file: `csv` or `json`.
    CHART_FILE = "chart-file:";
    /// Button that hides an exit's lines and shows them again, by exit.
    CHART_KEY = "chart-key:";
    /// Select of the owner.
    CHART_OWNER = "chart-owner";
    /// Which time is shown.
    CHART_RANGE = "chart-range";

    /// Entry of the decision log, by id.
    LOG_ENTRY = "log-entry:";
    /// Button.
    LOG_MORE = "log-more";

    /// Button.
    FORWARD_NEW = "forward-new";
    /// Row, by forward id.
    FORWARD_ROW = "forward-row:";
    /// Address to connect to, by forward id.
    FORWARD_ADDRESS = "forward-address:";
    /// Button, by forward id.
    FORWARD_PAUSE = "forward-pause:";
    /// Button, by forward id.
    FORWARD_RESUME = "forward-resume:";
    /// Button, by forward id.
    FORWARD_EDIT = "forward-edit:";
    /// Button, by forward id.
    FORWARD_DELETE = "forward-delete:";
    /// Button, by forward id.
    FORWARD_DIAGNOSE = "forward-diagnose:";
    /// Input of the forward form, by JSON name (`forward-field:targets`).
    FORWARD_FIELD = "forward-field:";
    /// Button of the forward form.
    FORWARD_SAVE = "forward-save";

    /// Item of a diagnosis, by index. `data-state` is `waiting`, `ok` or `failed`.
    DIAGNOSE_ITEM = "diagnose-item:";
    /// How far a diagnosis is.
    DIAGNOSE_STATUS = "diagnose-status";

    /// Input, by JSON name (`settings-field:confirmations`).
    SETTINGS_FIELD = "settings-field:";
    /// Button.
    SETTINGS_SAVE = "settings-save";
    /// Radio button, by tag (`language:zh-CN`).
    LANGUAGE = "language:";
    /// Radio button: `system`, `light` or `dark`.
    THEME = "theme:";
    /// Input of the password form, by JSON name, and `repeat`.
    PASSWORD_FIELD = "password-field:";
    /// Button of the password form.
    PASSWORD_SAVE = "password-save";
    /// Button.
    USER_NEW = "user-new";
    /// Row, by user id.
    USER_ROW = "user-row:";
    /// Button in a row, by user id.
    USER_EDIT = "user-edit:";
    /// Button in a row, by user id.
    USER_DELETE = "user-delete:";
    /// Input of the user form, by JSON name.
    USER_FIELD = "user-field:";
    /// Button of the user form.
    USER_SAVE = "user-save";

    /// Link on the monitor.
    WHAT_IF_OPEN = "what-if-open";
    /// Input or select of the what-if screen, by JSON name.
    WHAT_IF_FIELD = "what-if-field:";
    /// Slider of the what-if screen, by JSON name.
    WHAT_IF_SLIDER = "what-if-slider:";
    /// Checkbox of a policy, by its text.
    WHAT_IF_POLICY = "what-if-policy:";
    /// Button.
    WHAT_IF_RESET = "what-if-reset";
    /// Button.
    WHAT_IF_SUGGEST = "what-if-suggest";
    /// Button.
    WHAT_IF_USE = "what-if-use";
    /// Card with what came of the replay.
    WHAT_IF_RESULT = "what-if-result";
    /// What would have been different, in words.
    WHAT_IF_WORDS = "what-if-words";
    /// Table of the ways of choosing.
    WHAT_IF_TABLE = "what-if-table";
    /// Row of it, by its place from 0.
    WHAT_IF_ROW = "what-if-row:";

    /// List of what needs somebody.
    ATTENTION = "attention";
    /// Input.
    AUDIT_SEARCH = "audit-search";
    /// Row of the audit log, by id.
    AUDIT_ROW = "audit-row:";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_none_of_several_hides_another() {
        let unique: BTreeSet<_> = ALL.iter().collect();
        assert_eq!(unique.len(), ALL.len());
        for name in ALL {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b':'), "{name}");
        }
        assert_eq!(with(TUNNEL_ROW, 42), "tunnel-row:42");
        assert_eq!(of(CANDIDATE_ROW, 11, 31), "candidate-row:11:31");
    }
}
