//! The panel's endpoints.

use super::http::{ApiError, Method, StreamHandle, call, call_with, lines, tell, tell_with};
use shared::api::{
    AuditEntry, ChoiceInput, DecisionLogEntry, DeletePreview, DiagnoseLine, Forward, ForwardInput,
    InstallCommand, LoginAnswer, LoginRequest, Node, NodeInput, OwnerGroup, PasswordChange, PinInput,
    SettingsAnswer, SettingsInput, Tunnel, TunnelDecisions, TunnelInput, User, UserChange, UserInput,
    UserRecord,
};
use shared::ids::{ForwardId, NodeId, TunnelId, UserId};

type Answer<T> = Result<T, ApiError>;

/// Logs in; the session cookie comes with the answer.
pub async fn login(request: &LoginRequest) -> Answer<LoginAnswer> {
    call_with(Method::Post, "/auth/login", request).await
}

/// Ends the session.
pub async fn logout() -> Answer<()> {
    tell(Method::Post, "/auth/logout").await
}

/// Who is logged in.
pub async fn me() -> Answer<User> {
    call(Method::Get, "/auth/me").await
}

/// Changes the password of whoever is logged in.
pub async fn change_password(change: &PasswordChange) -> Answer<()> {
    tell_with(Method::Put, "/auth/password", change).await
}

/// All users.
pub async fn users() -> Answer<Vec<UserRecord>> {
    call(Method::Get, "/users").await
}

/// Creates a user.
pub async fn create_user(input: &UserInput) -> Answer<UserRecord> {
    call_with(Method::Post, "/users", input).await
}

/// Changes somebody else's role or password.
pub async fn update_user(id: UserId, change: &UserChange) -> Answer<UserRecord> {
    call_with(Method::Put, &format!("/users/{id}"), change).await
}

/// Deletes somebody else.
pub async fn delete_user(id: UserId) -> Answer<()> {
    tell(Method::Delete, &format!("/users/{id}")).await
}

/// All nodes.
pub async fn nodes() -> Answer<Vec<Node>> {
    call(Method::Get, "/nodes").await
}

/// Creates a node; its secret is in this answer only.
pub async fn create_node(input: &NodeInput) -> Answer<Node> {
    call_with(Method::Post, "/nodes", input).await
}

/// Changes a node.
pub async fn update_node(id: NodeId, input: &NodeInput) -> Answer<Node> {
    call_with(Method::Put, &format!("/nodes/{id}"), input).await
}

/// Deletes a node.
pub async fn delete_node(id: NodeId) -> Answer<()> {
    tell(Method::Delete, &format!("/nodes/{id}")).await
}

/// What uses a node.
pub async fn node_delete_preview(id: NodeId) -> Answer<DeletePreview> {
    call(Method::Get, &format!("/nodes/{id}/delete-preview")).await
}

/// Gives a node a new secret; it is in this answer only.
pub async fn rotate_node_secret(id: NodeId) -> Answer<Node> {
    call(Method::Post, &format!("/nodes/{id}/secret")).await
}

/// How to install a node's agent.
pub async fn install_command(id: NodeId) -> Answer<InstallCommand> {
    call(Method::Get, &format!("/nodes/{id}/install")).await
}

/// All tunnels.
pub async fn tunnels() -> Answer<Vec<Tunnel>> {
    call(Method::Get, "/tunnels").await
}

/// One tunnel.
pub async fn tunnel(id: TunnelId) -> Answer<Tunnel> {
    call(Method::Get, &format!("/tunnels/{id}")).await
}

/// Creates a tunnel.
pub async fn create_tunnel(input: &TunnelInput) -> Answer<Tunnel> {
    call_with(Method::Post, "/tunnels", input).await
}

/// Changes a tunnel.
pub async fn update_tunnel(id: TunnelId, input: &TunnelInput) -> Answer<Tunnel> {
    call_with(Method::Put, &format!("/tunnels/{id}"), input).await
}

/// Deletes a tunnel and its forwards.
pub async fn delete_tunnel(id: TunnelId) -> Answer<()> {
    tell(Method::Delete, &format!("/tunnels/{id}")).await
}

/// What goes with a tunnel.
pub async fn tunnel_delete_preview(id: TunnelId) -> Answer<DeletePreview> {
    call(Method::Get, &format!("/tunnels/{id}/delete-preview")).await
}

/// Sends a tunnel's configuration to its nodes again.
pub async fn redeploy_tunnel(id: TunnelId) -> Answer<()> {
    tell(Method::Post, &format!("/tunnels/{id}/redeploy")).await
}

/// The best-exit state of a tunnel.
pub async fn decisions(id: TunnelId) -> Answer<TunnelDecisions> {
    call(Method::Get, &format!("/tunnels/{id}/decisions")).await
}

/// Switches and refusals, newest first, older than `before`.
pub async fn decision_log(id: TunnelId, limit: u32, before: Option<i64>) -> Answer<Vec<DecisionLogEntry>> {
    let before = before.map(|id| format!("&before={id}")).unwrap_or_default();
    call(Method::Get, &format!("/tunnels/{id}/decision-log?limit={limit}{before}")).await
}

/// Groups whose choice is made ahead of connections.
pub async fn groups(id: TunnelId) -> Answer<Vec<OwnerGroup>> {
    call(Method::Get, &format!("/tunnels/{id}/groups")).await
}

/// Chooses a node in a group that leaves it to a person.
pub async fn choose(id: TunnelId, input: &ChoiceInput) -> Answer<()> {
    tell_with(Method::Put, &format!("/tunnels/{id}/choice"), input).await
}

/// Takes an owner's choice back.
pub async fn clear_choice(id: TunnelId, owner: NodeId) -> Answer<()> {
    tell(Method::Delete, &format!("/tunnels/{id}/choice?ownerNodeId={owner}")).await
}

/// Pins an exit.
pub async fn pin(id: TunnelId, input: &PinInput) -> Answer<()> {
    tell_with(Method::Put, &format!("/tunnels/{id}/pin"), input).await
}

/// Removes a tunnel's pin: of one owner, or the one for all.
pub async fn unpin(id: TunnelId, owner: Option<NodeId>) -> Answer<()> {
    let owner = owner.map(|owner| format!("?ownerNodeId={owner}")).unwrap_or_default();
    tell(Method::Delete, &format!("/tunnels/{id}/pin{owner}")).await
}

/// Tries everything about a tunnel, one line per step as it is done.
pub async fn diagnose_tunnel(
    id: TunnelId,
    handle: StreamHandle,
    on_line: impl FnMut(DiagnoseLine),
) -> Answer<()> {
    lines(&format!("/tunnels/{id}/diagnose"), handle, on_line).await
}

/// All forwards.
pub async fn forwards() -> Answer<Vec<Forward>> {
    call(Method::Get, "/forwards").await
}

/// Creates a forward.
pub async fn create_forward(input: &ForwardInput) -> Answer<Forward> {
    call_with(Method::Post, "/forwards", input).await
}

/// Changes a forward.
pub async fn update_forward(id: ForwardId, input: &ForwardInput) -> Answer<Forward> {
    call_with(Method::Put, &format!("/forwards/{id}"), input).await
}

/// Deletes a forward.
pub async fn delete_forward(id: ForwardId) -> Answer<()> {
    tell(Method::Delete, &format!("/forwards/{id}")).await
}

/// Pauses a forward, or lets it go on.
pub async fn set_forward_running(id: ForwardId, running: bool) -> Answer<()> {
    let verb = if running { "resume" } else { "pause" };
    tell(Method::Post, &format!("/forwards/{id}/{verb}")).await
}

/// Tries everything about a forward, one line per step as it is done.
pub async fn diagnose_forward(
    id: ForwardId,
    handle: StreamHandle,
    on_line: impl FnMut(DiagnoseLine),
) -> Answer<()> {
    lines(&format!("/forwards/{id}/diagnose"), handle, on_line).await
}

/// The settings in force.
pub async fn settings() -> Answer<SettingsAnswer> {
    call(Method::Get, "/settings").await
}

/// Changes settings.
pub async fn update_settings(input: &SettingsInput) -> Answer<SettingsAnswer> {
    call_with(Method::Put, "/settings", input).await
}

/// Who changed what, newest first, older than `before`; all of it, or what has `search` in the user's or the object's name.
pub async fn audit_log(limit: u32, before: Option<i64>, search: &str) -> Answer<Vec<AuditEntry>> {
    let before = before.map(|id| format!("&before={id}")).unwrap_or_default();
    let search = String::from(js_sys::encode_uri_component(search));
    call(Method::Get, &format!("/audit-log?limit={limit}{before}&search={search}")).await
}
